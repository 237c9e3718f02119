//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/store"
)

// putTimeout is how long a leader waits for the answer to one write.
const putTimeout = 5 * time.Second

// work is what a leader does in one term.
type work struct {
	*candidate
	t   *elect.Term
	seq uint64

	refused int // writes to the store

	counter backend.Record // as last read or written; its version is 0 where that is not known
}

// run writes, round by round, until the term ends or somebody wants it to: ctx, the
// tenure, a command.
func (k *work) run(ctx context.Context) {
	var tenure <-chan time.Time
	if k.w.Tenure > 0 {
		timer := time.NewTimer(k.w.Tenure)
		defer timer.Stop()
		tenure = timer.C
	}
	over := k.t.Context().Done()
	if k.w.Heedless {
		over = nil
	}
	pace := time.NewTicker(max(k.w.Pace, time.Millisecond))
	defer pace.Stop()
	for {
		k.seq++
		if !k.file(ctx) {
			return
		}
		k.count()
		k.set()
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-tenure:
			return
		case <-k.resign:
			return
		case <-pace.C:
		}
	}
}

// op describes a write of this round.
func (k *work) op(target string) Op {
	return Op{
		Election: k.name, Candidate: k.w.ID, Target: target, Token: k.t.Token(), Seq: k.seq,
		Value: fmt.Sprintf("%d %d", k.t.Token(), k.seq),
	}
}

// file writes to the store. It reports whether there is any point in going on.
func (k *work) file(ctx context.Context) bool {
	asked := k.w.clock()
	if !k.w.Heedless {
		if k.t.Check() != nil {
			return false
		}
	}
	if k.w.Work > 0 && backoff.Sleep(ctx, rand.N(k.w.Work)) != nil {
		return false
	}
	end := k.w.ops.begin(k.op(File))
	err := k.store.Append(store.Write{Token: k.t.Token(), Seq: k.seq, Candidate: k.w.ID, Checked: asked})
	switch {
	case err == nil:
		end(OK, 0, nil)
	case errors.Is(err, store.ErrRefused):
		end(Refused, 0, err)
		k.refused++
		return k.w.Heedless && k.refused < 2
	default:
		end(Unknown, 0, err)
	}
	return err == nil
}

// count writes the next number to the counter, on condition that it is as it was.
func (k *work) count() {
	ctx, cancel := context.WithTimeout(k.t.Context(), putTimeout)
	defer cancel()
	name := Record(Counter, k.name)
	if k.counter.Version == 0 {
		r, err := k.t.Get(ctx, name)
		if err != nil {
			return // the next round reads again
		}
		k.counter = r
	}
	op := k.op(Counter)
	op.Prev = string(k.counter.Value)
	op.Value = fmt.Sprintf("%d %s", number(op.Prev)+1, op.Value)
	k.counter = backend.Record{Value: []byte(op.Value), Version: k.put(ctx, op, name, k.counter.Version)}
}

// number returns the number that a value of the counter begins with; 0 for no value.
func number(value string) uint64 {
	first, _, _ := strings.Cut(value, " ")
	n, _ := strconv.ParseUint(first, 10, 64) // the checker finds what nobody wrote
	return n
}

// set writes the other record.
func (k *work) set() {
	ctx, cancel := context.WithTimeout(k.t.Context(), putTimeout)
	defer cancel()
	k.put(ctx, k.op(Last), Record(Last, k.name), 0)
}

// put makes a guarded write, and returns the new version; 0 where it is not known.
func (k *work) put(ctx context.Context, op Op, name string, at backend.Version) backend.Version {
	if ctx.Err() != nil {
		return 0
	}
	end := k.w.ops.begin(op)
	v, err := k.t.Put(ctx, name, []byte(op.Value), at)
	switch {
	case err == nil:
		end(OK, int64(v), nil)
		return v
	case errors.Is(err, backend.ErrNotMember):
		end(Refused, 0, err)
	case errors.Is(err, backend.ErrVersion):
		end(Changed, 0, err)
	default:
		end(Unknown, 0, err)
	}
	return 0
}
