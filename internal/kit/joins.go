package kit

import (
	"context"
	"sync"
)

// maxAbandoned is how many joins of a session may run on without their callers before others have to wait.
const maxAbandoned = 32

// Joins runs the joins of a session. What has been sent runs on until it is known whether there is a member,
// also if its caller has gone meanwhile, and then the member is removed. While many run on so, no other
// begins: callers that come and go faster than the coordinator answers slow down one another, and the line
// stays short for others.
type Joins[T any] struct {
	Go    func(f func()) (runs bool) // runs f in a goroutine; false when the session ends
	Ended func() error               // why it ends
	// Undo removes what a join has made for a caller that has gone. It returns when that is removed, or when
	// the session has ended.
	Undo func(made T)

	mu        sync.Mutex
	abandoned int
	fewer     chan struct{} // closed when there are fewer than maxAbandoned again; nil if there are
}

// Do calls join in a goroutine, and returns what that returns. If ctx ends first, Do returns the cause of
// ctx. The func undo, which join may return, removes what may stand although join has failed.
func (j *Joins[T]) Do(ctx context.Context, join func() (made T, undo func(), err error)) (T, error) {
	var none T
	if err := j.admit(ctx); err != nil {
		return none, err
	}
	type result struct {
		made T
		err  error
	}
	answer := make(chan result) // without room: who has gone takes none
	runs := j.Go(func() {
		made, undo, err := join()
		select {
		case answer <- result{made, err}:
		case <-ctx.Done():
			if err == nil {
				j.Undo(made)
			}
			defer j.count(-1)
		}
		if undo != nil {
			j.count(1)
			undo()
			j.count(-1)
		}
	})
	if !runs {
		return none, j.Ended()
	}
	select {
	case r := <-answer:
		return r.made, r.err
	case <-ctx.Done():
		j.count(1)
		return none, context.Cause(ctx)
	}
}

// admit blocks while many run on without their callers.
func (j *Joins[T]) admit(ctx context.Context) error {
	for {
		j.mu.Lock()
		fewer := j.fewer
		j.mu.Unlock()
		if fewer == nil {
			return nil
		}
		select {
		case <-fewer:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// count adds n to those that run on without their callers.
func (j *Joins[T]) count(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.abandoned += n
	switch {
	case j.abandoned >= maxAbandoned && j.fewer == nil:
		j.fewer = make(chan struct{})
	case j.abandoned < maxAbandoned && j.fewer != nil:
		close(j.fewer)
		j.fewer = nil
	}
}
