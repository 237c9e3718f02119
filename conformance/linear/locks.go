package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/record"
)

// locks is the workload of a register that is written under a lock: in each part of the history another one.
type locks struct {
	r *run
	h *History
}

// A lockOp is a call about the lock, or about what is written under it. No two calls write the same value.
type lockOp struct {
	Part        int
	Kind        string // lock, check, write at a version, put at any, or read
	Token       uint64
	Prev, Value string // as those of registerOp
}

// A lockState has the token of the last holder, and what is written.
type lockState struct {
	token uint64
	value string
}

func newLocks(r *run) *locks {
	return &locks{r, &History{name: "locks", model: porcupine.Model{
		Partition: partition(func(op lockOp) string { return strconv.Itoa(op.Part) }),
		Init:      func() any { return lockState{} },
		Step: func(state, input, output any) (bool, any) {
			s, op := state.(lockState), input.(lockOp)
			holds := s.token == op.Token
			switch op.Kind {
			case "lock":
				return op.Token > s.token, lockState{op.Token, s.value}
			case "check":
				return holds, s
			case "read":
				return s.value == op.Value, s
			}
			switch fits := holds && (op.Kind == "put" || s.value == op.Prev); {
			case output.(outcome) == refused:
				return s.value != op.Prev, s
			case fits:
				return true, lockState{s.token, op.Value}
			}
			return output.(outcome) == lost, s
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprint(input, output) },
	}}}
}

func (w *locks) history() *History { return w.h }

func (w *locks) value(b backend.Backend, part int) *record.Value[string] {
	return record.New(b, fmt.Sprintf("%s/guarded-%d", w.r.name, part), record.JSON[string]())
}

func (w *locks) step(ctx context.Context, c *client, b backend.Backend, dice *rand.Rand) error {
	var held *lock.Held
	var err error
	part, since := w.h.part(), w.r.now()
	op := &lockOp{Part: part, Kind: "lock"}
	note(w.r, w.h, c.id, op, func() outcome {
		if held, err = lock.NewMutex(b, fmt.Sprintf("%s/lock-%d", w.r.name, part), nil).Lock(ctx); err != nil {
			return nothing
		}
		op.Token = held.Token()
		return done
	})
	if err != nil {
		return err
	}
	defer held.Unlock(ctx)
	for range 1 + dice.IntN(3) {
		e, err := w.read(ctx, c, b, part)
		if err != nil {
			return err
		}
		note(w.r, w.h, c.id, &lockOp{Part: part, Kind: "check", Token: held.Token()}, func() outcome { return c.checked(since, held.Check()) })
		op := &lockOp{Part: part, Kind: "write", Token: held.Token(), Prev: e.Value, Value: fmt.Sprintf("c%d-%x", c.id, dice.Uint64())}
		if dice.IntN(2) == 0 {
			op.Kind, op.Prev = "put", ""
		}
		if err := w.write(ctx, c, b, held, e.Version, op); err != nil {
			return err
		}
	}
	if dice.IntN(3) > 0 {
		return nil
	}
	// A write is under way while the lock is given back.
	op = &lockOp{Part: part, Kind: "put", Token: held.Token(), Value: fmt.Sprintf("c%d-%x", c.id, dice.Uint64())}
	late := make(chan error)
	go func() { late <- w.write(ctx, c, b, held, 0, op) }()
	pause(ctx, time.Duration(dice.Int64N(int64(w.r.h.TTL/1000))))
	held.Unlock(ctx)
	<-late
	return nil
}

// write writes at a version, or at any.
func (w *locks) write(ctx context.Context, c *client, b backend.Backend, held *lock.Held, at backend.Version, op *lockOp) (err error) {
	note(w.r, w.h, c.id, op, func() outcome {
		if op.Kind == "write" {
			_, err = w.value(b, op.Part).SetAs(ctx, held, at, op.Value)
		} else {
			_, err = held.Put(ctx, w.value(b, op.Part).Name(), []byte(strconv.Quote(op.Value)), backend.Any)
		}
		return written(err)
	})
	return err
}

func (w *locks) read(ctx context.Context, c *client, b backend.Backend, part int) (e record.Entry[string], err error) {
	op := &lockOp{Part: part, Kind: "read"}
	note(w.r, w.h, c.id, op, func() outcome {
		if e, err = w.value(b, part).Get(ctx); err != nil {
			return nothing
		}
		op.Value = e.Value
		return done
	})
	return e, err
}

func (w *locks) end(ctx context.Context, c *client, b backend.Backend) error {
	for part := range w.h.part() + 1 {
		if _, err := w.read(ctx, c, b, part); err != nil {
			return err
		}
	}
	return nil
}
