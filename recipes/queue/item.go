package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/view"
)

// An Item is an item that this process has taken. Nobody else has it, until the claim is lost, as
// a term of an election can be. It is safe for concurrent use.
//
// Of the methods of the claim's term, Context is cancelled when the claim is lost, and when the
// item is confirmed or returned; Check says at the moment of the call whether it is; Token is
// larger than that of everybody who took this item before; and Put writes a record only while the
// item is claimed.
type Item struct {
	*elect.Term
	ID       string // of the Put; see [Entry]
	Value    string
	Position uint64 // in the coordinator's log; it grows from item to item

	queue     string
	item      backend.Member
	confirmed atomic.Bool
}

// Done confirms that the work on the item is done: it removes the item, on condition that the
// claim still stands, which the coordinator checks in the same atomic step. So of all who have
// taken an item one at most confirms it. Done blocks for about two round trips, and longer while
// the coordinator cannot be reached, until ctx or the session ends. Calling it again after it has
// succeeded does nothing.
//
// It fails with [ErrLost] if the claim was lost. After any other error the item is still claimed,
// and may have been removed: call Done again, or Return.
func (it *Item) Done(ctx context.Context) error {
	wait := backoff.New(ctx)
	for !it.confirmed.Load() {
		err := it.Remove(ctx, it.item)
		switch {
		case err == nil:
			it.confirmed.Store(true)
		case it.confirmed.Load(): // by another call of Done, which has also taken the claim away
		case errors.Is(err, backend.ErrNotMember), errors.Is(err, backend.ErrSessionEnded):
			it.Resign(ctx) // releases what the term holds here
			return fmt.Errorf("queue: item %s of %s is not known to be confirmed: %w: %w", it.ID, it.queue, ErrLost, err)
		case !again.Passing(err):
			return err
		default:
			if err := wait.After(ctx, err); err != nil {
				return err
			}
		}
	}
	it.Resign(ctx) // if that fails, it is tried on; a claim for what is not there keeps nobody out
	return nil
}

// Return gives the item back, at its place, so that the next to take gets it. It blocks for about
// one round trip, at most for [Options] ResignTimeout, whether ctx has ended or not. Calling it
// again, or after Done, does nothing.
//
// An error means that the item is claimed on. A goroutine returns it as soon as that is possible,
// and the end of the session does so in any case.
func (it *Item) Return(ctx context.Context) error { return it.Resign(ctx) }

// errTaken says that an item is another's, or stands no more.
var errTaken = errors.New("taken by another")

// claim claims the item for this process. It fails with errTaken if another claims it, or it has
// been confirmed.
func (q *Queue) claim(ctx context.Context, item backend.Member) (*Item, error) {
	o := q.o
	o.Value = subject(item)
	t, err := elect.New(view.Of(q.b, func(s backend.Session) backend.Session {
		return claimSession{view.Shared{Session: s, Instead: "a coordinator that has them"}}
	}), q.claims(), &o).TryCampaign(ctx)
	if errors.Is(err, elect.ErrNotFirst) {
		return nil, fmt.Errorf("queue: item %s of %s: %w: %w", item.Key, q.name, errTaken, err)
	}
	if err != nil {
		return nil, err
	}
	if err := q.stillStands(ctx, item, t); err != nil {
		t.Resign(ctx)
		return nil, err
	}
	e := entry(item)
	return &Item{Term: t, ID: e.ID, Value: e.Value, Position: e.Position, queue: q.name, item: item}, nil
}

// stillStands fails if somebody has confirmed the item before it was claimed in the term t: the
// look that found the item may have been made earlier.
func (q *Queue) stillStands(ctx context.Context, item backend.Member, t *elect.Term) error {
	s, err := q.b.Session(ctx)
	if err != nil {
		return err
	}
	l, err := q.readItems(ctx, s)
	switch {
	case err != nil:
		return err
	case !slices.ContainsFunc(l.Members, func(m backend.Member) bool { return subject(m) == subject(item) }):
		return fmt.Errorf("queue: item %s of %s: %w: it has gone", item.Key, q.name, errTaken)
	}
	return t.Check() // while the term lives, its session is the one of the look
}

// subject is what claims for the item have as their [elect.Options] Value.
func subject(item backend.Member) string { return fmt.Sprintf("%s %d", item.Key, item.Position) }

// takers returns the claims that hold, by their subject.
func takers(claims backend.Line) map[string]backend.Member {
	taken := make(map[string]backend.Member)
	for _, m := range slices.Backward(claims.Members) { // of several for an item the first one holds
		_, subject, _ := strings.Cut(m.Value, "\n")
		taken[subject] = m
	}
	return taken
}

// A claimSession is a session in which a member waits for those in front that have the same value
// of [elect.Options], which says what item they are for. Members join the line as shared ones, so
// that the session keeps its deadline for each of them as for a leader.
type claimSession struct{ view.Shared }

func (s claimSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return view.Unplaced(s.Shared.Join(ctx, line, value, record))
}

// Ahead says First if nobody in front claims the same item.
func (s claimSession) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || !p.First {
		return p, err
	}
	l, err := s.Line(ctx, m.Line)
	if err != nil {
		return backend.Place{}, err
	}
	_, subject, _ := strings.Cut(m.Value, "\n")
	switch first, ok := takers(l)[subject]; {
	case !ok:
		return backend.Place{}, fmt.Errorf("%w: %s has gone from %s", backend.ErrNotMember, m.Key, m.Line)
	case first.Key != m.Key || first.Position != m.Position:
		return backend.Place{Ahead: first, Header: p.Header}, nil
	}
	return p, nil
}

// WatchPlace implements [backend.Session].
func (s claimSession) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	return view.WatchPlace(ctx, s, s.Session, m, p)
}
