package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/recipes"
)

// An Item is an item that this process has taken. Nobody else has it until the claim ends: Done,
// Return and ReturnAfter end it, and it can be lost. Token is larger than that of every earlier
// taker of this item. It is safe for concurrent use.
type Item struct {
	recipes.Hold
	ID       string // the ID that Put gave it; see [Entry]
	Value    string
	Position uint64 // in the coordinator's log; it grows from item to item

	queue     string
	item      backend.Member
	confirmed atomic.Bool
}

// Done confirms that the work on the item is done: it removes the item, on condition that the
// claim still stands, which the coordinator checks in the same atomic step. So at most one of all
// takers of an item confirms it. Done blocks for about two round trips, and longer while the
// coordinator cannot be reached, until ctx or the session ends. Calling it again after it has
// succeeded does nothing.
//
// It fails with [ErrLost] if the claim was lost. After any other error the item is still claimed,
// and may have been removed: call Done again, or Return.
func (it *Item) Done(ctx context.Context) error {
	lost := func(err error) bool {
		return errors.Is(err, backend.ErrNotMember) || errors.Is(err, backend.ErrSessionEnded)
	}
	err := again.Try(ctx, func(err error) bool { return again.Passing(err) && !lost(err) }, func() error {
		if it.confirmed.Load() { // by another call of Done, which has also removed the claim
			return nil
		}
		err := it.Term().Remove(ctx, it.item)
		if err == nil || it.confirmed.Load() {
			it.confirmed.Store(true)
			return nil
		}
		return err
	})
	if err != nil && !lost(err) {
		return err
	}
	it.Term().Resign(ctx) // frees what this process keeps for the term; a claim for an item that has gone does no harm
	if err != nil {
		return fmt.Errorf("queue: item %s of %s is not known to be confirmed: %w: %w", it.ID, it.queue, ErrLost, err)
	}
	return nil
}

// Return gives the item back, at its place, so that the next taker gets it. It blocks for about one
// round trip, at most for [Options] ResignTimeout, whether ctx has ended or not. Calling it again,
// or after Done, does nothing.
//
// An error means that the item is still claimed. A goroutine returns it as soon as that is
// possible, and the end of the session returns it in any case.
func (it *Item) Return(ctx context.Context) error { return it.Term().Resign(ctx) }

// ReturnAfter gives the item back after a pause. Until then nobody gets it, and takers, in this
// process too, get the next one. Call it instead of Return if the work has failed and may fail
// again, so that one item does not keep a taker from all others. It does not block. If the claim is
// lost before, as when this process ends, the item is free at once. Done still confirms it, and
// Return still gives it back, before the pause is over.
func (it *Item) ReturnAfter(pause time.Duration) {
	over := time.After(pause)
	go func() {
		select {
		case <-over:
		case <-it.Context().Done():
		}
		it.Term().Resign(context.Background()) // if that fails, a goroutine tries on
	}()
}

// errTaken says that another has the item, or that it has gone.
var errTaken = errors.New("taken by another")

// claim claims the item for this process. It fails with errTaken if another claims it, or it has
// been confirmed.
func (q *Queue) claim(ctx context.Context, item backend.Member) (*Item, error) {
	o := q.o
	o.Value = kit.Subject(item)
	t, err := elect.New(view.Of(q.b, func(s backend.Session) backend.Session {
		return claimSession{s, item}
	}), q.claims(), &o).TryCampaign(ctx)
	if errors.Is(err, backend.ErrTaken) {
		return nil, fmt.Errorf("queue: item %s of %s: %w: %w", item.Key, q.name, errTaken, err)
	}
	if err != nil {
		return nil, err
	}
	e := entry(item)
	return &Item{Hold: recipes.NewHold(t), ID: e.ID, Value: e.Value, Position: e.Position, queue: q.name, item: item}, nil
}

// A claimSession is a session whose Join claims an item. Claims are shared members, so that the
// session keeps its deadline for each of them as for a leader.
type claimSession struct {
	backend.Session
	item backend.Member
}

func (s claimSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Claim(ctx, line, value, record, s.item)
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%s cannot be shared on this backend, which has no shared members; use a coordinator that has them: %w", line, err)
	}
	return j, err
}
