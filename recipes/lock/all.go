package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
)

// All blocks until it holds all the locks, or ctx ends. It takes them one after the other, in
// the order of their names, so that two processes that want some of the same locks never wait
// for each other. If All cannot get one of the locks, or loses one while it waits for another, it
// unlocks those that it holds and returns the error. It is otherwise like [Mutex.Lock].
//
// Locks of different backends have no common order, nor have two names that mean one lock. So all
// locks should be of one backend. All fails with [backend.ErrInvalid] if no lock is given, or if
// two have the same name: the second would wait for the first.
func All(ctx context.Context, locks ...*Mutex) (*HeldAll, error) {
	return all(ctx, locks, (*Mutex).Lock)
}

// TryAll is [All] that does not wait for others: if one of the locks is not free, TryAll unlocks
// those that it already holds and returns [ErrLocked].
func TryAll(ctx context.Context, locks ...*Mutex) (*HeldAll, error) {
	return all(ctx, locks, (*Mutex).TryLock)
}

func all(ctx context.Context, locks []*Mutex, take func(*Mutex, context.Context) (*Held, error)) (*HeldAll, error) {
	inOrder := slices.SortedFunc(slices.Values(locks), func(a, b *Mutex) int { return cmp.Compare(a.Name(), b.Name()) })
	if len(inOrder) == 0 {
		return nil, fmt.Errorf("lock: %w call of All: it was given no locks", backend.ErrInvalid)
	}
	for i, m := range inOrder[1:] {
		if m.Name() == inOrder[i].Name() {
			return nil, fmt.Errorf("lock: %w call of All: it was given %s twice", backend.ErrInvalid, m.Name())
		}
	}
	h := new(HeldAll)
	h.ctx, h.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancelCause(ctx) // also ends when a lock that it already has is lost
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })()
	var leaving []func() bool // for each lock, stops that it is unlocked when ctx ends
	for _, m := range inOrder {
		one, err := take(m, ctx)
		if err == nil {
			h.locks = append(h.locks, one)
			context.AfterFunc(one.Context(), func() { h.cancel(context.Cause(one.Context())) })
			// At the same time as all others, and as the line of the next: each may take ResignTimeout.
			leaving = append(leaving, context.AfterFunc(ctx, func() { one.Unlock(ctx) }))
			err = context.Cause(ctx) // another lock was lost during the wait for this one
		}
		if err != nil {
			cancel(err)
			return nil, errors.Join(err, h.Unlock(ctx))
		}
	}
	for _, stop := range leaving {
		if !stop() {
			return nil, errors.Join(context.Cause(ctx), h.Unlock(ctx))
		}
	}
	return h, nil
}

// HeldAll are several locks that this process holds together. It is safe for concurrent use.
type HeldAll struct {
	locks  []*Held // in the order in which they were taken
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Context is cancelled just after the context of the first lock that is lost, with its cause, and by
// Unlock, before that unlocks. It does not block. Check does not lag behind.
func (h *HeldAll) Context() context.Context { return h.ctx }

// Check returns nil while all the locks are held, and afterwards why the first is not; see
// [elect.Term.Check]. It does not block.
func (h *HeldAll) Check() error {
	for _, one := range h.locks {
		if err := one.Check(); err != nil {
			h.cancel(err)
		}
	}
	return context.Cause(h.ctx)
}

// Deadline is the earliest of the locks' deadlines; see [elect.Term.Deadline]. The zero time means
// that there is none. It does not block.
func (h *HeldAll) Deadline() time.Time {
	var first time.Time
	for _, one := range h.locks {
		if d := one.Deadline(); first.IsZero() || !d.IsZero() && d.Before(first) {
			first = d
		}
	}
	return first
}

// Locks returns the locks in the order of their names. Each has a token of its own. It does not
// block.
func (h *HeldAll) Locks() []*Held { return slices.Clone(h.locks) }

// Unlock unlocks all of them, the last one first; see [Held.Unlock]. It goes on when one of them
// fails, and returns all errors. It blocks at most for the ResignTimeout of each lock.
func (h *HeldAll) Unlock(ctx context.Context) error {
	h.cancel(elect.ErrResigned)
	var errs []error
	for _, one := range slices.Backward(h.locks) {
		errs = append(errs, one.Unlock(ctx))
	}
	return errors.Join(errs...)
}
