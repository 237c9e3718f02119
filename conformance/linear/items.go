package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/recipes/queue"
)

// items is the workload of a set.
type items struct {
	r *run
	h *History

	mu  sync.Mutex
	put map[string]bool // the values that were surely put
}

// An itemOp is a call about one item. Two items have the same value only where a Put has been tried
// again after a lost answer, and its first try came late.
type itemOp struct {
	Kind     string // take, check or confirm
	Value    string
	Position uint64
	Token    uint64
}

// An itemState is the state of an item.
type itemState struct {
	token     uint64 // of the last claim
	confirmed bool
}

func newItems(r *run) *items {
	w := &items{r: r, put: make(map[string]bool)}
	w.h = &History{name: "items", also: w.complete, model: porcupine.Model{
		Partition: partition(func(op itemOp) string { return fmt.Sprint(op.Position) }),
		Init:      func() any { return itemState{} },
		Step: func(state, input, output any) (bool, any) {
			s, op := state.(itemState), input.(itemOp)
			holds := !s.confirmed && s.token == op.Token
			switch op.Kind {
			case "take":
				return !s.confirmed && op.Token > s.token, itemState{token: op.Token}
			case "check":
				return holds, s
			}
			if holds {
				s.confirmed = true
				return true, s
			}
			return output.(outcome) == lost, s
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprint(input, output) },
	}}
	return w
}

func (w *items) history() *History { return w.h }

func (w *items) queue(b backend.Backend) *queue.Queue { return queue.New(b, w.r.name+"/items", nil) }

// waiting is about how many items may wait: without a bound, clients would put more than they take.
const waiting = 10

func (w *items) step(ctx context.Context, c *client, b backend.Backend, dice *rand.Rand) error {
	q := w.queue(b)
	if dice.IntN(2) == 0 {
		value := fmt.Sprintf("c%d-%x", c.id, dice.Uint64())
		n, err := q.Len(ctx)
		if err == nil && n < waiting {
			if _, err = q.Put(ctx, value); err == nil {
				w.mu.Lock()
				w.put[value] = true
				w.mu.Unlock()
			}
		}
		return err
	}
	since := w.r.now()
	call := q.TryTake
	if dice.IntN(2) == 0 {
		call = func(ctx context.Context) (*queue.Item, error) {
			soon, cancel := context.WithTimeoutCause(ctx, w.r.h.TTL/20, queue.ErrEmpty)
			defer cancel()
			return q.Take(soon)
		}
	}
	item, err := w.take(ctx, c, call)
	if err != nil {
		return err
	}
	if item == nil {
		pause(ctx, w.r.h.TTL/200)
		return nil
	}
	defer item.Return(ctx)
	for range dice.IntN(3) {
		pause(ctx, time.Duration(dice.Int64N(int64(w.r.h.TTL/100))))
		w.check(c, item, since)
	}
	if dice.IntN(4) == 0 {
		item.Return(ctx) // so that this claim cannot confirm the item later
	}
	if err := w.confirm(ctx, c, item); !errors.Is(err, queue.ErrLost) {
		return err
	}
	return nil
}

// take takes an item by Take or TryTake. It returns nil if there is none. That tells nothing: a claim whose answer was lost stands
// for a while, and no call has its item.
func (w *items) take(ctx context.Context, c *client, call func(context.Context) (*queue.Item, error)) (item *queue.Item, err error) {
	op := &itemOp{Kind: "take"}
	note(w.r, w.h, c.id, op, func() outcome {
		if item, err = call(ctx); err != nil {
			return nothing
		}
		op.Value, op.Position, op.Token = item.Value, item.Position, item.Token()
		return done
	})
	if errors.Is(err, queue.ErrEmpty) {
		err = nil
	}
	return item, err
}

func (w *items) about(kind string, item *queue.Item) *itemOp {
	return &itemOp{Kind: kind, Value: item.Value, Position: item.Position, Token: item.Token()}
}

func (w *items) check(c *client, item *queue.Item, since int64) {
	note(w.r, w.h, c.id, w.about("check", item), func() outcome { return c.checked(since, item.Check()) })
}

func (w *items) confirm(ctx context.Context, c *client, item *queue.Item) (err error) {
	note(w.r, w.h, c.id, w.about("confirm", item), func() outcome {
		if err = item.Done(ctx); err != nil {
			return lost
		}
		return done
	})
	return err
}

// end takes and confirms the items that are left. Claims of clients that have died hold for some time.
func (w *items) end(ctx context.Context, c *client, b backend.Backend) error {
	q := w.queue(b)
	confirmed := make(map[uint64]bool)
	for {
		item, err := w.take(ctx, c, q.TryTake)
		if err == nil && item != nil && !confirmed[item.Position] {
			err = w.confirm(ctx, c, item)
		}
		if err != nil {
			return err
		}
		if item != nil {
			if confirmed[item.Position] {
				return nil // which fits no order
			}
			confirmed[item.Position] = true
			continue
		}
		n, err := q.Len(ctx)
		if n == 0 || err != nil {
			return err
		}
		pause(ctx, w.r.h.TTL/20)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// complete fails unless each value that was surely put has been taken. Then it was also confirmed,
// because nothing is left.
func (w *items) complete(all []porcupine.Operation) error {
	taken := make(map[string]bool)
	for _, o := range all {
		taken[o.Input.(itemOp).Value] = true
	}
	for value := range w.put {
		if !taken[value] {
			return fmt.Errorf("%q was put, and nobody got it", value)
		}
	}
	return nil
}
