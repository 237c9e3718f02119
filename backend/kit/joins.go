package kit

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// Joins runs the joins of a session. A join that has been sent goes on until it is known whether
// there is a member, also if its caller has gone. In that case the member is then removed. Until
// then the join counts in the [Backlog].
type Joins[T any] struct {
	Go      func(f func()) (runs bool) // runs f in a goroutine; false when the session ends
	Ended   func() error               // why the session has ended
	Backlog *Backlog                   // of the session
	// Undo removes what a join has made, for Discard. It returns when that is removed or the session has ended, or
	// with why it cannot be removed, which names the member ([About]).
	Undo func(made T) error
	End  func(why error) // ends the session
}

// Discard removes what a join has made and no caller knows of, such as one for a caller that has gone. If
// that cannot be removed, as when a right was taken away, Discard ends the session: as long as that lives,
// others would wait behind the member, and nobody would know why.
func (j *Joins[T]) Discard(made T) {
	if err := j.Undo(made); err != nil {
		j.Stuck(err)
	}
}

// Stuck ends the session because of why a member that no caller knows of cannot be removed. It is also for the ghosts of a driver,
// whose join has no answer.
func (j *Joins[T]) Stuck(why error) {
	if j.Ended() == nil {
		j.End(fmt.Errorf("a member that nobody waits for cannot be removed: %w", why))
	}
}

// About says in an error which member it is about. It returns nil if err is nil.
func About(m backend.Member, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of %s: %w", m.Key, m.Line, err)
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
				j.Discard(made)
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
