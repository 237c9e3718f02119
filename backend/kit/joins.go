package kit

import "context"

// Joins runs the joins of a session. A join that has been sent goes on until it is known whether
// there is a member, also if its caller has gone. In that case the member is then removed. Until
// then the join counts in the [Backlog].
type Joins[T any] struct {
	Go      func(f func()) (runs bool) // runs f in a goroutine; false when the session ends
	Ended   func() error               // why the session has ended
	Backlog *Backlog                   // of the session
	// Undo removes what a join has made for a caller that has gone. It returns when that is removed
	// or the session has ended.
	Undo func(made T)
}

// Do calls join in a goroutine, and returns what that returns. If ctx ends first, Do returns the cause of
// ctx. The func undo, which join may return, removes what may stand although join has failed.
func (j *Joins[T]) Do(ctx context.Context, join func() (made T, undo func(), err error)) (T, error) {
	var none T
	if err := j.Backlog.await(ctx); err != nil {
		return none, err
	}
	type result struct {
		made T
		err  error
	}
	answer := make(chan result) // without room, so that a caller that has gone takes no answer
	runs := j.Go(func() {
		made, undo, err := join()
		select {
		case answer <- result{made, err}:
		case <-ctx.Done():
			if err == nil {
				j.Undo(made)
			}
			defer j.Backlog.add(-1)
		}
		if undo != nil {
			j.Backlog.add(1)
			undo()
			j.Backlog.add(-1)
		}
	})
	if !runs {
		return none, j.Ended()
	}
	select {
	case r := <-answer:
		return r.made, r.err
	case <-ctx.Done():
		j.Backlog.add(1)
		return none, context.Cause(ctx)
	}
}
