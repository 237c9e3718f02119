package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

// Options are the optional settings of a [Queue]. Nil and the zero value mean the defaults.
type Options struct {
	// Options are those of an election. ID says who has taken an item, to people who list the
	// queue. Trace is told of two lines, that of the turns and that of the claims; the Member of an
	// event says which. Value, Ready, Priority, Site and History must be left out.
	elect.Options
	// Limit is how many items may stand in the queue, those that are taken included. 0 means that
	// there is no limit. All processes that put must give the same Limit.
	Limit int
}

// MaxValue is the longest value of an item, in bytes.
const MaxValue = backend.MaxValue - idLength - 1

// idLength is the length of what rand.Text returns.
const idLength = 26

var (
	// ErrFull says that as many items stand in the queue as [Options] Limit allows.
	ErrFull = errors.New("queue is full")
	// ErrEmpty says that there is no item to take: the queue is empty, or others have taken all
	// items.
	ErrEmpty = errors.New("no item to take")
	// ErrLost says that a claim was lost before the item was known to be confirmed: the item
	// goes to another taker. Only if an answer of the coordinator was lost too, the item may have
	// been confirmed nevertheless.
	ErrLost = errors.New("claim lost")
)

// A Queue is a process's handle on a queue. It is safe for concurrent use. Each call of Take or
// TryTake takes an item by itself.
type Queue struct {
	b     backend.Backend
	name  string
	limit int
	o     elect.Options // of the claims
	turns *elect.Election
	roomy atomic.Bool // the newest Put has found room for more items, so the next one need not look first
	err   error       // what is wrong with the arguments of New
}

// New returns a handle on the queue with the given name on b. It does not block and does not talk
// to the coordinator. If the name or an option is not allowed, every call fails with
// [backend.ErrInvalid]. Where the backend has no items, every call but Len and List fails with
// [errors.ErrUnsupported]; where it has no shared members, items can be put, and not taken. The
// caller still has to close b.
//
// The queue uses the lines NAME-items, NAME-claims and NAME-turn; see the package comment. Choose a
// NAME for which nothing else uses these.
func New(b backend.Backend, name string, o *Options) *Queue {
	if o == nil {
		o = new(Options)
	}
	q := &Queue{b: b, name: name, limit: o.Limit, o: *aQueue.Options(name, &o.Options)}
	q.turns = elect.New(b, name+naming.Turn, &q.o)
	q.err = q.check(o)
	return q
}

func (q *Queue) check(o *Options) error {
	if err := aQueue.CheckName(q.name); err != nil {
		return err
	}
	return o.check(q.name)
}

// Check returns what is wrong with the options by themselves, a [backend.ErrInvalid], or nil. New does not return it: each call of
// the queue does.
func (o *Options) Check() error {
	if o == nil {
		return nil
	}
	return o.check("a queue")
}

func (o *Options) check(name string) error {
	switch {
	case o.Limit < 0:
		return fmt.Errorf("queue: %w Limit %d of %s: give 0 for none", backend.ErrInvalid, o.Limit, name)
	case o.Value != "":
		return fmt.Errorf("queue: %w Value %.40q of %s: leave it empty; a claim says there which item it is for", backend.ErrInvalid, o.Value, name)
	}
	claim := o.Options
	claim.Value = strings.Repeat("x", maxSubject)
	return aQueue.CheckOptions(name, &claim)
}

// maxSubject is more than the name of an item takes in the value of a claim.
const maxSubject = 256

var aQueue = recipe.Recipe{Package: "queue", Owner: naming.Queue}

// Name returns the queue's name.
func (q *Queue) Name() string { return q.name }

func (q *Queue) items() string  { return q.name + naming.ItemsOf }
func (q *Queue) claims() string { return q.name + naming.Claims }

// Put puts a value at the end of the queue, and returns the ID of the item, by which [Queue.List] and takers know it. It blocks for about one round trip. If there is a
// Limit, Put reads the items afterwards; it reads them before, too, if it is the first Put or the
// last one has found the queue nearly full. If the queue is full, Put fails with [ErrFull]. If many
// put at once, more items than the Limit may stand for as long as Put takes. If one of these is
// taken before Put can remove it, it counts as put.
//
// A value is text of at most [MaxValue] bytes; otherwise Put fails with [backend.ErrInvalid].
//
// While the coordinator cannot be reached, Put tries on until ctx ends. If its answer is lost, Put
// looks whether the item stands, and appends it again only if it does not. So the item is put once,
// with two exceptions: it was taken and confirmed before that look, or its first request arrives
// after that look. Then it is put twice, with the same ID. After an error other than ErrFull and
// ErrInvalid it may have been put, with the ID that Put returns also then.
func (q *Queue) Put(ctx context.Context, value string) (id string, err error) {
	if err := cmp.Or(q.err, checkValue(value)); err != nil {
		return "", err
	}
	id = rand.Text()
	stored, tried := id+"\n"+value, false
	return id, again.Try(ctx, passing, func() error { return q.put(ctx, stored, &tried) })
}

func checkValue(value string) error {
	switch {
	case len(value) > MaxValue:
		return fmt.Errorf("queue: %w value: %d bytes, at most %d are possible; keep it elsewhere, and put where that is", backend.ErrInvalid, len(value), MaxValue)
	case !utf8.ValidString(value):
		return fmt.Errorf("queue: %w value: not UTF-8", backend.ErrInvalid)
	}
	return nil
}

// put appends an item with the value stored, and removes it again if it is beyond the limit. If
// tried is set, the item may already stand, and put appends it only if it does not. put sets it.
func (q *Queue) put(ctx context.Context, stored string, tried *bool) error {
	s, err := q.b.Session(ctx)
	if err != nil {
		return err
	}
	at := -1
	if *tried || q.limit > 0 && !q.roomy.Load() {
		// A server that lags behind may not show yet what stands, or may still show what has been taken.
		if err := s.Refresh(ctx); err != nil {
			return err
		}
		l, err := q.readItems(ctx, s)
		if err != nil {
			return err
		}
		switch at = indexOf(stored, l); {
		case at >= 0 || q.limit == 0 || len(l.Members) < q.limit:
		case *tried:
			return fmt.Errorf("queue: %s: the item may have been put, and taken since: the answer of the coordinator was lost, and now %d items stand there, as its Limit allows", q.name, len(l.Members))
		default:
			return q.full(len(l.Members))
		}
	}
	if at < 0 {
		*tried = true
		if _, err := s.Append(ctx, q.items(), stored); err != nil {
			return q.explain(err)
		}
	}
	if q.limit == 0 {
		return nil
	}
	l, err := q.readItems(ctx, s) // others may have appended at the same time; it shows what stood in front then, or later
	if err != nil {
		return err
	}
	q.roomy.Store(len(l.Members) < q.limit)
	if at = indexOf(stored, l); at < q.limit { // it is not there if it has been taken and confirmed
		return nil
	}
	// put removes it as a taker does, so that no taker can have it.
	item, err := q.claim(ctx, l.Members[at])
	if errors.Is(err, errTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	defer item.Return(ctx)
	return cmp.Or(item.Done(ctx), q.full(at))
}

func indexOf(stored string, l backend.Line) int {
	return slices.IndexFunc(l.Members, func(m backend.Member) bool { return m.Value == stored })
}

func (q *Queue) full(items int) error {
	return fmt.Errorf("queue: %s: %w: it has %d items, and its Limit is %d", q.name, ErrFull, items, q.limit)
}

// explain says what to do if the backend has no items, or if something else uses the queue's lines.
func (q *Queue) explain(err error) error {
	if errors.Is(err, backend.ErrForeign) {
		return fmt.Errorf("queue: %s: %w; or give the queue another name", q.name, err)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("queue: %s cannot be kept on this backend, which has no items; use another coordinator: %w", q.name, err)
	}
	return err
}

// passing reports whether a call for an item may succeed later.
func passing(err error) bool {
	return again.Passing(err) || errors.Is(err, ErrLost) || errors.Is(err, elect.ErrLost)
}

// An Entry is one item as it stands in the queue.
type Entry struct {
	ID       string // the ID that Put gave it; no other item has it, except a copy (see [Queue.Put])
	Value    string
	Position uint64 // in the coordinator's log; it grows from item to item
	Taker    string // the ID of the process that has taken it; empty if it is free
	Token    uint64 // of the taker's claim; 0 if it is free
}

// Len returns how many items stand in the queue, those that are taken included. It blocks for
// about a round trip.
func (q *Queue) Len(ctx context.Context) (int, error) {
	s, err := q.session(ctx)
	if err != nil {
		return 0, err
	}
	l, err := q.readItems(ctx, s)
	return len(l.Members), err
}

// List returns the items in order, and says who has taken them. It blocks for about two round
// trips.
func (q *Queue) List(ctx context.Context) ([]Entry, error) {
	s, err := q.session(ctx)
	if err != nil {
		return nil, err
	}
	claims, items, err := q.look(ctx, s)
	if err != nil {
		return nil, err
	}
	taken := make(map[string]backend.Member)
	for _, m := range slices.Backward(claims.Members) { // of several claims for an item the first one holds
		subject, _ := kit.SubjectOf(m)
		taken[subject] = m
	}
	entries := make([]Entry, len(items.Members))
	for i, m := range items.Members {
		entries[i] = entry(m)
		if claim, ok := taken[kit.Subject(m)]; ok {
			entries[i].Taker = value.ID(claim.Value)
			entries[i].Token = claims.Token(claim)
		}
	}
	return entries, nil
}

// session returns a session whose reads show the present state.
func (q *Queue) session(ctx context.Context) (backend.Session, error) {
	if q.err != nil {
		return nil, q.err
	}
	s, err := q.b.Session(ctx)
	if err != nil {
		return nil, err
	}
	return s, s.Refresh(ctx)
}

// look reads the claims and then the items. Done removes the item first, and then its claim. So
// look never shows a confirmed item as free.
func (q *Queue) look(ctx context.Context, s backend.Session) (claims, items backend.Line, err error) {
	if claims, err = s.Line(ctx, q.claims()); err != nil {
		return claims, items, err
	}
	for _, m := range claims.Members {
		if _, ok := kit.SubjectOf(m); !ok {
			return claims, items, q.explain(kit.Foreign(m, "claim"))
		}
	}
	items, err = q.readItems(ctx, s)
	return claims, items, err
}

func (q *Queue) readItems(ctx context.Context, s backend.Session) (backend.Line, error) {
	l, err := s.Line(ctx, q.items())
	if err != nil {
		return l, err
	}
	for _, m := range l.Members {
		if !isItem(m) {
			return l, q.explain(kit.Foreign(m, "item"))
		}
	}
	return l, nil
}

// isItem reports whether Put can have made m. Others may write anything into the line, and a taker
// may run a command with it.
func isItem(m backend.Member) bool {
	return m.Pinned && len(m.Value) > idLength && m.Value[idLength] == '\n' && backend.CheckValue(m.Value) == nil &&
		!strings.ContainsFunc(m.Value[:idLength], func(r rune) bool { return !('A' <= r && r <= 'Z' || '2' <= r && r <= '7') })
}

func entry(item backend.Member) Entry {
	return Entry{ID: item.Value[:idLength], Value: item.Value[idLength+1:], Position: item.Position}
}
