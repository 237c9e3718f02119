package recipe_test

import (
	"context"
	"errors"
	"strings"
	"testing"

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

// calls are one call of each recipe whose members stand together, with what the recipe does not keep.
var calls = map[string]struct {
	call      func(ctx context.Context, b backend.Backend, name string, o *elect.Options) error
	histories bool
}{
	"a reader's lock": {func(ctx context.Context, b backend.Backend, name string, o *elect.Options) error {
		_, err := lock.NewRWMutex(b, name, o).TryRLock(ctx)
		return err
	}, true},
	"a writer's lock": {func(ctx context.Context, b backend.Backend, name string, o *elect.Options) error {
		_, err := lock.NewRWMutex(b, name, o).TryLock(ctx)
		return err
	}, true},
	"a semaphore": {func(ctx context.Context, b backend.Backend, name string, o *elect.Options) error {
		_, err := lock.NewSemaphore(b, name, 2, o).TryAcquire(ctx)
		return err
	}, false},
	"a queue": {func(ctx context.Context, b backend.Backend, name string, o *elect.Options) error {
		q := queue.New(b, name, &queue.Options{Options: *o})
		if _, err := q.Put(ctx, "x"); err != nil {
			return err
		}
		_, err := q.TryTake(ctx)
		return err
	}, false},
	"a group": {func(ctx context.Context, b backend.Backend, name string, o *elect.Options) error {
		_, err := group.New(b, name, o).Join(ctx)
		return err
	}, true},
	"a barrier": {func(ctx context.Context, b backend.Backend, name string, o *elect.Options) error {
		return barrier.New(b, name, 1, o).Wait(ctx)
	}, false},
	"a double barrier": {func(ctx context.Context, b backend.Backend, name string, o *elect.Options) error {
		_, err := barrier.NewDouble(b, name, 1, o).Enter(ctx)
		return err
	}, false},
	"a pool": {func(ctx context.Context, b backend.Backend, name string, o *elect.Options) error {
		_, err := task.NewPool(b, name, o).Submit(ctx, "x")
		return err
	}, true},
}

// Who stands together with others is not compared with them, so the options for that are refused. A candidate
// in front that has them would be taken for the holder of something else.
func TestOptions(t *testing.T) {
	for _, option := range []struct {
		name string
		o    elect.Options
	}{
		{"", elect.Options{ID: "a", Margin: 1}},
		{"Ready", elect.Options{Ready: func(context.Context) error { return nil }}},
		{"Priority", elect.Options{Priority: 7}},
		{"Site", elect.Options{Site: "north"}},
		{"History", elect.Options{History: 3}},
	} {
		for what, c := range calls {
			bubble.Run(t, func(t *testing.T, m *memory.Coordinator) {
				err := c.call(t.Context(), bubble.Client(t, m, "a"), "jobs", &option.o)
				if option.name == "" || option.name == "History" && c.histories {
					if err != nil {
						t.Errorf("%s with what it has: %v", what, err)
					}
					return
				}
				if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), option.name) {
					t.Errorf("%s with %s: %v, want that this is refused", what, option.name, err)
				}
			})
		}
	}
}

// A name that is too long for what a recipe puts behind it is refused as the caller gave it.
func TestNames(t *testing.T) {
	for what, c := range calls {
		bubble.Run(t, func(t *testing.T, m *memory.Coordinator) {
			b := bubble.Client(t, m, "a")
			for n := backend.MaxName + 1; ; n-- {
				name := strings.Repeat("n", n)
				err := c.call(t.Context(), b, name, new(elect.Options))
				if err == nil {
					return
				}
				if !errors.Is(err, backend.ErrInvalid) || strings.Contains(err.Error(), "nnn-") {
					t.Fatalf("%s of a name of %d bytes: %v", what, n, err)
				}
			}
		})
	}
}
