package lock

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

// A Semaphore is a process's handle on a lock that up to n processes hold at a time. It is safe
// for concurrent use. Each call asks for a slot by itself.
//
// The holders stand together in the line NAME-slots: the first n of it hold a slot. All that wait
// stand in a second line, NAME-waiting, and only the first of them joins the line of the holders.
// So only one that waits watches the holders, and an exit wakes two: the one that gets the slot,
// and the one whose turn is next.
type Semaphore struct {
	name         string
	n            int
	turns, slots *elect.Election
	err          error // what is wrong with the name or the options
}

var aSemaphore = recipe.Recipe{Package: "lock", Owner: naming.Semaphore}

// NewSemaphore returns a handle on the semaphore with the given name on b; see [NewMutex]. All
// processes must give the same n: a process with a larger n takes slots that do not exist for the
// others. If n is less than 1, or Ready, Priority, Site or History is set, every call fails with
// [backend.ErrInvalid]. Where the backend has no shared members, every call fails with
// [errors.ErrUnsupported].
//
// Trace is told of both lines, for whoever waits for a turn waits for a slot; it is told of a term only if that is a slot.
//
// The semaphore uses the lines NAME-slots and NAME-waiting: choose a NAME for which nothing else
// uses these. A [Mutex] called NAME is another lock.
func NewSemaphore(b backend.Backend, name string, n int, o *elect.Options) *Semaphore {
	slot := aSemaphore.Options(name, o)
	turn := *slot
	turn.Trace = withoutTerm(turn.Trace)
	s := &Semaphore{name: name, n: n, err: aSemaphore.Check(name, o)}
	s.turns = elect.New(view.Beside(b, s.holders(), instead), s.waiting(), &turn)
	s.slots = elect.New(view.Of(b, func(s backend.Session) backend.Session {
		return &slotSession{Session: shared(s), n: n}
	}), s.holders(), slot)
	return s
}

// holders and waiting are the lines of the semaphore.
func (s *Semaphore) holders() string { return s.name + naming.Slots }
func (s *Semaphore) waiting() string { return s.name + naming.Waiting }

// withoutTerm returns a func that passes on all but the steps of a term, because a turn is no slot. If f is nil, it returns nil.
func withoutTerm(f func(trace.Event)) func(trace.Event) {
	if f == nil {
		return nil
	}
	return func(ev trace.Event) {
		if ev.Kind != trace.Elected && ev.Kind != trace.Ended && ev.Kind != trace.Working {
			f(ev)
		}
	}
}

// Name returns the semaphore's name.
func (s *Semaphore) Name() string { return s.name }

// Acquire blocks until this call holds a slot or ctx ends; see [Mutex.Lock]. Each slot that is
// held has a token of its own, larger than those of the slots that were acquired before. So a
// store that refuses all tokens but the largest would refuse all holders but the newest: let it
// compare tokens for each thing that one holder works on.
func (s *Semaphore) Acquire(ctx context.Context) (*Held, error) {
	return s.acquire(ctx, func(ctx context.Context, e *elect.Election) (*Held, error) { return held(e.Campaign(ctx)) })
}

// TryAcquire is [Semaphore.Acquire] that does not wait for others: if no slot is free, or somebody
// waits for one, it returns [ErrLocked]; see [Mutex.TryLock].
func (s *Semaphore) TryAcquire(ctx context.Context) (*Held, error) {
	return s.acquire(ctx, try)
}

// acquire takes its turn, and then a slot. The turn keeps the line of the holders short: if it is lost during the wait for a
// slot, acquire waits for its turn again.
func (s *Semaphore) acquire(ctx context.Context, stand func(context.Context, *elect.Election) (*Held, error)) (*Held, error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.n < 1 {
		return nil, fmt.Errorf("lock: %w semaphore %s of %d slots: it needs one or more", backend.ErrInvalid, s.name, s.n)
	}
	for {
		turn, err := stand(ctx, s.turns)
		if err != nil {
			return nil, err
		}
		inTurn, over := recipe.InTurn(ctx, turn.Term())
		slot, err := stand(inTurn, s.slots)
		lost := inTurn.Err() != nil
		over()
		if err == nil || !lost || ctx.Err() != nil {
			return slot, err
		}
	}
}

// A slotSession is a session in which the first n of a line are first.
type slotSession struct {
	backend.Session
	n int

	mu    sync.Mutex
	front []backend.Member // the members in front of the one that the newest Ahead has told to wait
}

func (s *slotSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return view.Unplaced(s.Session.Join(ctx, line, value, record))
}

// Ahead says First if m is among the first n. Members join the line as shared ones, so that the
// session keeps its deadline for each of them as for a leader.
func (s *slotSession) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || !p.First {
		return p, err
	}
	l, err := s.Line(ctx, m.Line)
	if err != nil {
		return backend.Place{}, err
	}
	i := slices.IndexFunc(l.Members, func(o backend.Member) bool { return o.Key == m.Key && o.Position == m.Position })
	switch {
	case i < 0:
		return backend.Place{}, fmt.Errorf("%w: %s has gone from %s", backend.ErrNotMember, m.Key, m.Line)
	case i < s.n:
		return p, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.front = l.Members[:i]
	return backend.Place{Ahead: s.front[i-1], Header: p.Header}, nil
}

// WatchPlace implements [backend.Session].
func (s *slotSession) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	return view.WatchPlace(ctx, s, s.Session, m, p)
}

// If Ahead has said to wait for m, Gone also returns when another member in front goes, because any
// exit may make room.
func (s *slotSession) Gone(ctx context.Context, m backend.Member) error {
	s.mu.Lock()
	front := s.front
	s.mu.Unlock()
	if len(front) == 0 || front[len(front)-1] != m {
		return s.Session.Gone(ctx, m)
	}
	var exits []func(context.Context) error
	for _, o := range front {
		exits = append(exits, func(ctx context.Context) error { return s.Session.Gone(ctx, o) })
	}
	return again.Either(ctx, exits...)
}
