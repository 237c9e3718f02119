package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
)

// Take takes the first item that is free, and blocks until there is one or ctx ends. The caller
// must call [Item.Done] or [Item.Return] on what it gets, also after the claim was lost.
//
// Those who wait get items in the order in which they came. If ctx ends first, Take leaves all
// lines, within [Options] ResignTimeout, and returns the cause of ctx. Once an item is taken, ctx
// has no effect on it. Take waits on, at the end of the line, when the session ends or the
// coordinator cannot be reached.
//
// It returns other errors, such as [backend.ErrDenied]. If something stands in the queue's lines
// that is no item or no claim, it says what, and takes nothing.
func (q *Queue) Take(ctx context.Context) (item *Item, err error) {
	if q.err != nil {
		return nil, q.err
	}
	err = persist(ctx, func(wait *backoff.Backoff) error {
		item, err = q.takeInTurn(ctx, wait)
		return err
	})
	return item, err
}

// TryTake is [Queue.Take] that does not wait for an item: if none is free, it returns [ErrEmpty].
// It does not wait behind those who wait for items either, and may take one before them. It
// blocks for about six round trips. While the coordinator cannot be reached, it tries on until
// ctx ends.
func (q *Queue) TryTake(ctx context.Context) (item *Item, err error) {
	if q.err != nil {
		return nil, q.err
	}
	err = persist(ctx, func(*backoff.Backoff) error {
		item, _, _, err = q.takeFree(ctx)
		return err
	})
	return item, err
}

// takeInTurn waits for its turn, and then for an item. If the turn is lost meanwhile, another has
// it: takeInTurn then fails. That would do no harm, for the claims decide who has an item.
func (q *Queue) takeInTurn(ctx context.Context, wait *backoff.Backoff) (*Item, error) {
	turn, err := q.turns.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	defer turn.Resign(ctx) // if that fails, it is tried on: nobody else has a turn until then
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(turn.Context(), func() { cancel(context.Cause(turn.Context())) })()
	for {
		item, claims, items, err := q.takeFree(ctx)
		switch {
		case errors.Is(err, ErrEmpty):
			wait.Reset() // nothing is wrong any more
			err = q.change(ctx, wait.Jitter, claims, items)
		case errors.Is(err, errTaken):
			err = wait.After(ctx, err)
		default:
			return item, err
		}
		if err != nil {
			return nil, err
		}
	}
}

// takeFree takes the first item that nobody claims. It also returns the lines in which it has
// looked for that.
func (q *Queue) takeFree(ctx context.Context) (_ *Item, claims, items backend.Line, err error) {
	s, err := q.b.Session(ctx)
	if err != nil {
		return nil, claims, items, err
	}
	if claims, items, err = q.look(ctx, s); err != nil {
		return nil, claims, items, err
	}
	taken := takers(claims)
	i := slices.IndexFunc(items.Members, func(m backend.Member) bool { _, ok := taken[subject(m)]; return !ok })
	if i < 0 {
		return nil, claims, items, q.empty(ctx, s)
	}
	item, err := q.claim(ctx, items.Members[i])
	return item, claims, items, err
}

// empty returns ErrEmpty, or what keeps the queue empty for ever.
func (q *Queue) empty(ctx context.Context, s backend.Session) error {
	// There is no such item, and drivers refuse that before they ask the coordinator.
	err := s.Remove(ctx, backend.Member{}, backend.Member{})
	if errors.Is(err, errors.ErrUnsupported) {
		return q.explain(err)
	}
	return fmt.Errorf("queue: %s: %w", q.name, ErrEmpty)
}

// change waits until one of the lines has changed, at most for about a session time. Only who has
// the turn calls it, so that an item wakes one.
func (q *Queue) change(ctx context.Context, j backoff.Jitter, lines ...backend.Line) error {
	s, err := q.b.Session(ctx)
	if err != nil {
		return err
	}
	var watches []func(context.Context) error
	for i, name := range []string{q.claims(), q.items()} {
		watches = append(watches, func(ctx context.Context) error {
			_, err := s.WatchLine(ctx, name, lines[i])
			return err
		})
	}
	return again.ForAWhile(ctx, s, j, func(ctx context.Context) error { return again.Either(ctx, watches...) })
}
