package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

// Take takes the first item that is free, and blocks until there is one or ctx ends. The caller
// must call [Item.Done] or [Item.Return] on what it gets, also after the claim was lost.
//
// Calls that find no free item wait, and get items in the order in which they came. A call that comes
// just when an item becomes free may take it before them. If ctx ends first, Take leaves all
// lines, within [Options] ResignTimeout, and returns the cause of ctx. Once an item is taken, ctx
// has no effect on it. When the session ends or the coordinator cannot be reached, Take waits on,
// at the end of the line.
//
// It returns other errors, such as [backend.ErrDenied]. If it finds a member that is no claim among
// the claims, or one that is no item in front of the free items, it names that and takes nothing.
func (q *Queue) Take(ctx context.Context) (item *Item, err error) {
	if q.err != nil {
		return nil, q.err
	}
	err = again.Try(ctx, passing, func() error {
		if item, err = q.takeFree(ctx); errors.Is(err, ErrEmpty) {
			item, err = q.takeInTurn(ctx)
		}
		return err
	})
	return item, err
}

// TryTake is [Queue.Take] that does not wait for an item: if none is free, it returns [ErrEmpty].
// It does not wait behind calls of Take either, and may take an item before them. It blocks for
// about two round trips, on ZooKeeper for four. It finds what was put before it was called: if no item seems to
// be free, it looks again, for as many round trips. While the coordinator cannot be reached, it tries
// on until ctx ends.
func (q *Queue) TryTake(ctx context.Context) (item *Item, err error) {
	if q.err != nil {
		return nil, q.err
	}
	err = again.Try(ctx, passing, func() error {
		if item, err = q.takeFree(ctx); !errors.Is(err, ErrEmpty) {
			return err
		}
		if _, err := q.session(ctx); err != nil { // the server that was asked may lag behind, and not know of an item yet
			return err
		}
		item, err = q.takeFree(ctx)
		return err
	})
	return item, err
}

// takeInTurn waits for its turn, and then for an item. If the turn is lost meanwhile, takeInTurn
// fails, because another has the turn. To go on would do no harm either: the claims decide who has
// an item.
func (q *Queue) takeInTurn(ctx context.Context) (item *Item, err error) {
	turn, err := q.turns.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	ctx, over := recipe.InTurn(ctx, turn)
	defer over()
	j := backoff.JitterOf(ctx)
	var seen *sight
	for {
		if item, err = q.takeFree(ctx); !errors.Is(err, ErrEmpty) {
			return item, err
		}
		if seen, err = q.change(ctx, j, seen); err != nil {
			return nil, err
		}
	}
}

// A sight is what a taker has seen of both lines. It is told of what happens after that.
type sight struct{ claims, items backend.Line }

// takeFree takes the first item that nobody claims. If another claims it at the same moment, takeFree
// looks again, after a pause that is short at first, because there is a next item for each of them.
func (q *Queue) takeFree(ctx context.Context) (*Item, error) {
	wait := backoff.Backoff{Min: time.Millisecond, Max: time.Second, Jitter: backoff.JitterOf(ctx)}
	taken := func(err error) bool { return errors.Is(err, errTaken) }
	return kit.Retry(ctx, wait, taken, q.takeFirst)
}

// takeFirst is takeFree that looks once. It fails with errTaken if another was quicker.
func (q *Queue) takeFirst(ctx context.Context) (*Item, error) {
	s, err := q.b.Session(ctx)
	if err != nil {
		return nil, err
	}
	item, err := s.Free(ctx, q.items(), q.claims())
	switch {
	case errors.Is(err, backend.ErrTaken):
		return nil, fmt.Errorf("queue: %s: %w", q.name, ErrEmpty)
	case err != nil:
		return nil, q.explain(err)
	case !isItem(item):
		return nil, q.explain(kit.Foreign(item, "item"))
	}
	return q.claim(ctx, item)
}

// change waits until an item may be free, at most for about a session time, and returns what it has seen by then. seen is what it has
// returned before, or nil. Only the taker that has the turn calls it, so that an item wakes one taker.
func (q *Queue) change(ctx context.Context, j backoff.Jitter, seen *sight) (*sight, error) {
	s, err := q.b.Session(ctx)
	if err != nil {
		return nil, err
	}
	if seen == nil {
		claims, items, err := q.look(ctx, s) // short lines: none of the items was free
		if err != nil {
			return nil, err
		}
		seen = &sight{claims, items}
		if _, err := s.Free(ctx, q.items(), q.claims()); !errors.Is(err, backend.ErrTaken) {
			return seen, err // an item has become free before the look
		}
	}
	follow := func(line string, l *backend.Line) func(context.Context) error {
		return func(ctx context.Context) error {
			now, err := s.WatchLine(ctx, line, *l)
			if err == nil {
				*l = now
			}
			return err
		}
	}
	return seen, again.ForAWhile(ctx, s, j, func(ctx context.Context) error {
		return again.Either(ctx, follow(q.claims(), &seen.claims), follow(q.items(), &seen.items))
	})
}
