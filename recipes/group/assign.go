package group

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/ending"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/rendezvous"
)

// Assign divides the items among the present members, and calls work for each item of this member.
// All members must call Assign, with the same items: nobody works on the share of a member that
// does not. A process that only looks on uses Follow and Owners, and does not join.
//
// An item is text, after which an election is named. Assign fails at once with [backend.ErrInvalid] if no
// election can have that name, because it is too long, or ends with .history, say.
//
// The items and the IDs of the present members alone decide which member an item falls to. Each has
// as many as the others, or one more. When a member comes or goes, its share moves, and few other
// items do. When it comes back with its ID, all members get their earlier items again. Members with
// the same ID count as one: what one of them holds, the other waits for.
//
// An owner holds its item as a leader holds an election. So there is at most one owner at a time,
// whatever the members know of each other. Its term t has a token that grows from owner to owner.
// Before work begins, a record says who owns the item; see [Group.Owners].
//
// The context of work ends when the term ends, when the item falls to another member, and when
// Assign is to end. The item is handed on when work has returned: work that ignores its context
// holds up the next owner. If the term was lost, Assign campaigns for the item again. If work
// returns nil while its context lasts, the item is done: as long as it falls to this member, nobody
// begins it again. If work resigns the term, Assign campaigns for the item again, after a pause. If
// work fails while its context lasts, Assign ends. An error of work after that is logged as a
// warning.
//
// Assign blocks until ctx ends, the presence ends, work fails, or another error does not pass by
// itself. It returns the cause of ctx, the cause of the presence's context, or that error. Before
// it returns, all work has returned and all items have been handed on. If the presence was lost
// ([elect.ErrLost]), leave, join, and assign again. Two calls of Assign at a time wait for each
// other's items.
//
// It costs one watch, and one reading of the line for each change. An item that moves costs its old
// owner one request, and the new one four: to join, for the fence, to see that it is first, and to
// note that it is the owner. Each item that is held has two watches, as every term of an election.
func (p *Presence) Assign(ctx context.Context, items []string, work func(ctx context.Context, item string, t *elect.Term) error) error {
	if len(items) == 0 {
		return fmt.Errorf("group: %w call of Assign: it was given no items", backend.ErrInvalid)
	}
	return p.assign(ctx, func(ctx context.Context, tell func([]string) error) error {
		if err := tell(items); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}, work)
}

// AssignEach is [Presence.Assign] of items that change: items returns a sequence of lists, such as
// those of a record that all members follow. Each list replaces the one before, and may be empty.
// Work on an item that the new list lacks ends, as if the item had fallen to another member.
// AssignEach ends when the sequence ends or yields an error. All members must be given the same
// lists. While members have different lists, an item may have no owner, and members may wait for
// each other's items; but two members never work on one item.
//
// AssignEach calls items once, in a goroutine of its own, and waits for the sequence. So the
// sequence must end when the context of items does: it ends when AssignEach is to end, also because
// work has failed or the presence was lost.
func (p *Presence) AssignEach(ctx context.Context, items func(context.Context) iter.Seq2[[]string, error], work func(ctx context.Context, item string, t *elect.Term) error) error {
	if items == nil {
		return fmt.Errorf("group: %w call of AssignEach: it was given no items", backend.ErrInvalid)
	}
	return p.assign(ctx, func(ctx context.Context, tell func([]string) error) error {
		for list, err := range items(ctx) {
			if err == nil {
				err = tell(list)
			}
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				return err
			}
		}
		return errors.New("group: the sequence of items has ended")
	}, work)
}

// assign divides the items of each list that each passes on. It calls each in a goroutine of its
// own.
func (p *Presence) assign(ctx context.Context, each func(context.Context, func([]string) error) error, work func(ctx context.Context, item string, t *elect.Term) error) error {
	if work == nil {
		return fmt.Errorf("group: %w call of Assign: it was given no function", backend.ErrInvalid)
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.Context(), func() { cancel(context.Cause(p.Context())) })()

	var mu sync.Mutex // guards the variables below
	var items, ids []string
	own := make(map[string]context.CancelFunc)
	divide := func() {
		falls := rendezvous.Divide(items, ids)
		for item, stop := range own {
			if falls[item] != p.g.o.ID {
				stop()
				delete(own, item)
			}
		}
		for item, id := range falls {
			if _, held := own[item]; held || id != p.g.o.ID || ctx.Err() != nil {
				continue
			}
			mineAlone, stop := context.WithCancel(ctx)
			own[item] = stop
			running.Go(func() {
				switch err := p.hold(mineAlone, item, work); {
				case mineAlone.Err() == nil:
					cancel(fmt.Errorf("group: item %q: %w", item, err))
				case ending.Failed(mineAlone, err):
					p.g.o.Logger.Warn("the work on an item failed when it was to end", "item", item, "err", err)
				}
			})
		}
	}
	running.Go(func() {
		cancel(each(ctx, func(list []string) error {
			if err := p.g.checkItems(list); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			items = slices.Clone(list)
			divide()
			return nil
		}))
	})
	return p.g.follow(ctx, func(line backend.Line) error {
		present, err := p.g.present(line, nil)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		ids = nil
		for _, m := range present {
			ids = append(ids, m.ID)
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		divide()
		return nil
	})
}

// hold campaigns for the item, and works on it, until ctx ends or something fails. A second call
// for the item waits in line until the first has returned.
func (p *Presence) hold(ctx context.Context, item string, work func(context.Context, string, *elect.Term) error) error {
	done := false
	return p.g.election(escape(item)).Run(ctx, func(ctx context.Context, t *elect.Term) error {
		givenAway := func() bool { return errors.Is(context.Cause(t.Context()), elect.ErrResigned) } // by work
		if p.Check() == nil && !done {                                                               // otherwise the presence was lost too, and Assign is about to end
			if err := p.g.note(ctx, item, t); err != nil {
				return err
			}
			err := work(ctx, item, t)
			if givenAway() && !ending.Failed(t.Context(), err) {
				return elect.ErrStepDown
			}
			if err != nil {
				return err
			}
			done = ctx.Err() == nil
		}
		if <-ctx.Done(); givenAway() {
			return elect.ErrStepDown
		}
		return nil
	})
}

// note writes down who owns the item. It tries again as long as the term lasts.
func (g *Group) note(ctx context.Context, item string, t *elect.Term) error {
	b, err := json.Marshal(Owner{Item: item, ID: g.o.ID, Token: t.Token(), Since: time.Now().UTC()})
	if err != nil {
		return err
	}
	return unassigned(again.Try(ctx, again.Passing, func() error {
		_, err := t.Put(ctx, g.owner(item), b, 0)
		return err
	}))
}

// checkItems returns what is wrong with the items of an Assign.
func (g *Group) checkItems(items []string) error {
	sorted := slices.Sorted(slices.Values(items))
	for i, item := range sorted {
		if i > 0 && item == sorted[i-1] {
			return fmt.Errorf("group: %w item %q: it was given twice", backend.ErrInvalid, item)
		}
		if err := g.checkItem(item); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) checkItem(item string) error {
	switch {
	case item == "":
		return fmt.Errorf("group: %w item: it is empty", backend.ErrInvalid)
	case !utf8.ValidString(item):
		return fmt.Errorf("group: %w item %q: not UTF-8", backend.ErrInvalid, item)
	}
	if err := cmp.Or(backend.CheckName(g.owner(item)), naming.CheckElection(g.itemLine(escape(item)), g.o.History > 0)); err != nil {
		return fmt.Errorf("group: item %.64q: its record and its election are named after it: %w", item, err)
	}
	return nil
}
