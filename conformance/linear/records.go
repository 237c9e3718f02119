package linear

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/anishathalye/porcupine"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/recipes/record"
)

// records is the workload of registers.
type records struct {
	r *run
	h *History
}

// A registerOp is a call on a record. No two calls write the same value.
type registerOp struct {
	Key, Kind string // get, set, delete, or clear, which deletes whatever is there
	Prev      string // the value at the version that is the condition; empty for no record, and for clear
	Value     string // that was read or is written; empty for no record
}

func newRecords(r *run) *records {
	return &records{r, &History{name: "records", model: porcupine.Model{
		Partition: partition(func(op registerOp) string { return op.Key }),
		Init:      func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			was, op := state.(string), input.(registerOp)
			switch {
			case op.Kind == "get":
				return was == op.Value, was
			case op.Kind == "clear" && output.(outcome) == refused:
				return true, was // others were faster, again and again
			case op.Kind == "clear":
				return true, ""
			case output.(outcome) == refused:
				return was != op.Prev, was
			case output.(outcome) == lost && was != op.Prev:
				return true, was
			}
			return was == op.Prev, op.Value
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprint(input, output) },
	}}}
}

func (w *records) history() *History { return w.h }

// keys is how many records there are in each part of the history: so few that all clients delete and make the same ones anew.
const keys = 2

func (w *records) key(part, i int) string { return fmt.Sprintf("r%d-%d", part, i) }

func (w *records) value(b backend.Backend, key string) *record.Value[string] {
	return record.New(b, w.r.name+"/records/"+key, record.JSON[string]())
}

func (w *records) step(ctx context.Context, c *client, b backend.Backend, dice *rand.Rand) error {
	key := w.key(w.h.part(), dice.IntN(keys))
	if dice.IntN(4) == 0 { // without a look: the client's server may not have heard of the newest state
		return w.clear(ctx, c, b, key)
	}
	e, err := w.get(ctx, c, b, key)
	if err != nil {
		return err
	}
	op := &registerOp{Key: key, Kind: "set", Prev: e.Value, Value: fmt.Sprintf("c%d-%x", c.id, dice.Uint64())}
	if e.Exists() && dice.IntN(3) == 0 {
		op.Kind, op.Value = "delete", ""
	}
	note(w.r, w.h, c.id, op, func() outcome {
		if op.Kind == "delete" {
			err = w.value(b, key).Delete(ctx, e.Version)
		} else {
			_, err = w.value(b, key).CompareAndSet(ctx, e.Version, op.Value)
		}
		return written(err)
	})
	return err
}

func (w *records) clear(ctx context.Context, c *client, b backend.Backend, key string) (err error) {
	note(w.r, w.h, c.id, &registerOp{Key: key, Kind: "clear"}, func() outcome {
		err = w.value(b, key).Delete(ctx, backend.Any)
		return written(err)
	})
	return err
}

func (w *records) get(ctx context.Context, c *client, b backend.Backend, key string) (e record.Entry[string], err error) {
	op := &registerOp{Key: key, Kind: "get"}
	note(w.r, w.h, c.id, op, func() outcome {
		if e, err = w.value(b, key).Get(ctx); err != nil {
			return nothing
		}
		op.Value = e.Value
		return done
	})
	return e, err
}

func (w *records) end(ctx context.Context, c *client, b backend.Backend) error {
	for part := range w.h.part() + 1 {
		for i := range keys {
			if _, err := w.get(ctx, c, b, w.key(part, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// partition divides a history by what its operations are about.
func partition[O any](about func(O) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		index := make(map[string]int)
		for _, o := range all {
			k := about(o.Input.(O))
			i, ok := index[k]
			if !ok {
				i = len(parts)
				index[k], parts = i, append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	}
}
