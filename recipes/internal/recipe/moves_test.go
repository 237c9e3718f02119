package recipe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/recipes/barrier"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/queue"
	"github.com/succession-dev/succession/recipes/task"
)

// Recipes with shared members or items say on a backend of package migrate that they do not work there, and begin no
// migration of a line that they use besides: its gate would keep all from that line on the next coordinator.
func TestWhatDoesNotMove(t *testing.T) {
	for what, call := range map[string]func(context.Context, backend.Backend) error{
		"a reader's lock": func(ctx context.Context, b backend.Backend) error {
			_, err := lock.NewRWMutex(b, "jobs", nil).RLock(ctx)
			return err
		},
		"a semaphore": func(ctx context.Context, b backend.Backend) error {
			_, err := lock.NewSemaphore(b, "jobs", 2, nil).Acquire(ctx)
			return err
		},
		"a semaphore that is tried": func(ctx context.Context, b backend.Backend) error {
			_, err := lock.NewSemaphore(b, "jobs", 2, nil).TryAcquire(ctx)
			return err
		},
		"a queue": func(ctx context.Context, b backend.Backend) error {
			_, err := queue.New(b, "jobs", nil).Take(ctx)
			return err
		},
		"a barrier": func(ctx context.Context, b backend.Backend) error { return barrier.New(b, "jobs", 1, nil).Wait(ctx) },
		"a double barrier": func(ctx context.Context, b backend.Backend) error {
			_, err := barrier.NewDouble(b, "jobs", 1, nil).Enter(ctx)
			return err
		},
		"a group": func(ctx context.Context, b backend.Backend) error {
			_, err := group.New(b, "jobs", nil).Join(ctx)
			return err
		},
		"a worker of a pool": func(ctx context.Context, b backend.Backend) error {
			return task.NewPool(b, "jobs", nil).Work(ctx, func(context.Context, *task.Task) (string, error) { return "", nil })
		},
		"a client of a pool": func(ctx context.Context, b backend.Backend) error {
			_, err := task.NewPool(b, "jobs", nil).Submit(ctx, "x")
			return err
		},
	} {
		for _, begin := range []bool{false, true} {
			bubble.Run(t, func(t *testing.T, from *memory.Coordinator) {
				to := memory.New(&memory.Options{TTL: bubble.TTL})
				b := migrate.New(from.Client("a"), to.Client("a"), &migrate.Options{From: "memory:from", To: "memory:to", Begin: begin})
				defer b.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := call(ctx, b); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("%s, which may begin: %t: %v, want %v", what, begin, err, errors.ErrUnsupported)
				}
				for _, c := range []*memory.Coordinator{from, to} {
					s, err := bubble.Client(t, c, "looks").Session(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if left := bubble.Must[map[string]int](t)(s.Lines(t.Context())); len(left) > 0 {
						t.Errorf("%s, which may begin: %t: it leaves %v", what, begin, left)
					}
				}
			})
		}
	}
}
