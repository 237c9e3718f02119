package recipes_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/barrier"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/queue"
	"github.com/succession-dev/succession/recipes/task"
)

// Recipes of one name do not meet, but for elections and locks, which are one.
func TestNames(t *testing.T) {
	const name = "jobs"
	recipes := map[string]struct {
		alone bool // it stands in the line with the name itself
		take  func(context.Context, backend.Backend) (*elect.Term, error)
	}{
		"election": {true, func(ctx context.Context, b backend.Backend) (*elect.Term, error) {
			return elect.New(b, name, nil).Campaign(ctx)
		}},
		"mutex": {true, func(ctx context.Context, b backend.Backend) (*elect.Term, error) {
			return termOf(lock.NewMutex(b, name, nil).Lock(ctx))
		}},
		"reader": {true, func(ctx context.Context, b backend.Backend) (*elect.Term, error) {
			return termOf(lock.NewRWMutex(b, name, nil).RLock(ctx))
		}},
		"semaphore": {false, func(ctx context.Context, b backend.Backend) (*elect.Term, error) {
			return termOf(lock.NewSemaphore(b, name, 1, nil).Acquire(ctx))
		}},
		"group": {false, func(ctx context.Context, b backend.Backend) (*elect.Term, error) {
			return termOf(group.New(b, name, nil).Join(ctx))
		}},
		"barrier": {false, func(ctx context.Context, b backend.Backend) (*elect.Term, error) {
			return termOf(barrier.NewDouble(b, name, 1, nil).Enter(ctx))
		}},
		"queue": {false, func(ctx context.Context, b backend.Backend) (*elect.Term, error) {
			return termOf(queue.New(b, name, nil).Take(ctx))
		}},
		"standby": {false, func(ctx context.Context, b backend.Backend) (*elect.Term, error) {
			s := task.NewStandby(b, name, nil)
			if err := s.Start(ctx, "x"); err != nil {
				return nil, err
			}
			running, ended := make(chan *task.Run, 1), make(chan error, 1)
			go func() {
				ended <- s.Hot(ctx, "x", func(ctx context.Context, r *task.Run) error {
					running <- r
					<-ctx.Done()
					return context.Cause(ctx)
				})
			}()
			select {
			case r := <-running:
				return r.Term(), nil
			case err := <-ended:
				return nil, err
			}
		}},
	}
	for what, busy := range recipes {
		for other, used := range recipes {
			if what == other {
				continue
			}
			t.Run(what+" and "+other, func(t *testing.T) {
				bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
					if _, err := queue.New(bubble.Client(t, c, "put"), name, nil).Put(t.Context(), "an item"); err != nil {
						t.Fatal(err)
					}
					ctx, end := context.WithCancel(t.Context())
					var holding sync.WaitGroup
					for i := range 3 { // of a semaphore and a queue, one then stands in each line
						b := bubble.Client(t, c, fmt.Sprint("busy", i))
						holding.Go(func() {
							if h, err := busy.take(ctx, b); err == nil {
								<-ctx.Done()
								h.Resign(t.Context())
							}
						})
						synctest.Wait()
					}
					soon, cancel := context.WithTimeout(t.Context(), bubble.TTL)
					defer cancel()
					h, err := used.take(soon, bubble.Client(t, c, "user"))
					if err == nil {
						h.Resign(t.Context())
					}
					if together := err == nil; together == (busy.alone && used.alone) {
						t.Errorf("beside each other: %v, %v", together, err)
					}
					end()
					holding.Wait()
				})
			})
		}
	}
}

// termOf is the term by which something is held.
func termOf[H interface{ Term() *elect.Term }](h H, err error) (*elect.Term, error) {
	if err != nil {
		return nil, err
	}
	return h.Term(), nil
}
