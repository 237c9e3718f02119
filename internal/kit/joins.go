package kit

import (
	"context"
	"sync"
)

// maxJoins is how many joins of a session are under way at once.
const maxJoins = 32

// Joins runs the joins of a session. What has been sent runs on until it is known whether there is a member,
// also if its caller has gone meanwhile, and then the member is removed. A join counts until that is done. So
// callers that come and go faster than the coordinator answers slow down one another, and the line stays
// short for others.
type Joins[T any] struct {
	Life *Life
	// Undo removes what stands and what nobody waits for. It returns when that has been removed, or when the
	// session has ended.
	Undo func(T)

	once  sync.Once
	slots chan struct{} // holds one for each join under way
}

// Do calls join in a goroutine, in its turn, and returns what that returns. If ctx ends first, Do returns the
// cause of ctx. The func undo, which join may return, is called before the join is over: it removes what may
// stand although join has failed.
func (j *Joins[T]) Do(ctx context.Context, join func() (made T, undo func(), err error)) (T, error) {
	j.once.Do(func() { j.slots = make(chan struct{}, maxJoins) })
	var none T
	select {
	case j.slots <- struct{}{}:
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	type result struct {
		made T
		err  error
	}
	answer := make(chan result) // without room: who has gone takes none
	runs := j.Life.Go(func() {
		defer func() { <-j.slots }()
		made, undo, err := join()
		select {
		case answer <- result{made, err}:
		case <-ctx.Done():
			if err == nil {
				j.Undo(made)
			}
		}
		if undo != nil {
			undo()
		}
	})
	if !runs {
		<-j.slots
		return none, j.Life.Ended()
	}
	select {
	case r := <-answer:
		return r.made, r.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}
