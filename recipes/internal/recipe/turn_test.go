package recipe_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/queue"
)

// Who has got what it took a turn for leaves the turn by itself: no goroutine is begun for that.
func TestTurnIsLeftOnce(t *testing.T) {
	for what, take := range map[string]func(ctx context.Context, b backend.Backend) error{
		"a slot": func(ctx context.Context, b backend.Backend) error {
			_, err := lock.NewSemaphore(b, "jobs", 1, nil).Acquire(ctx)
			return err
		},
		"an item": func(ctx context.Context, b backend.Backend) error {
			_, err := queue.New(b, "jobs", nil).Take(ctx)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				left := 0
				b := view.Of(bubble.Client(t, c, "a"), func(s backend.Session) backend.Session {
					return leaves{s, func() {
						left++
						if n := resigning(); n != 1 {
							t.Errorf("%d goroutines leave the turn", n)
						}
					}}
				})
				taken := make(chan error)
				go func() { taken <- take(t.Context(), b) }()
				time.Sleep(time.Second) // until it waits
				if _, err := queue.New(bubble.Client(t, c, "other"), "jobs", nil).Put(t.Context(), "x"); err != nil {
					t.Fatal(err)
				}
				if err := <-taken; err != nil || left != 1 {
					t.Errorf("%v, after %d turns", err, left)
				}
			})
		})
	}
}

// A leaves is a session that calls f before a member leaves.
type leaves struct {
	backend.Session
	f func()
}

func (s leaves) Leave(ctx context.Context, m backend.Member) error {
	s.f()
	return s.Session.Leave(ctx, m)
}

// resigning returns how many goroutines are in Resign when all that they do by themselves is done.
func resigning() int {
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "elect.(*Term).Resign(")
}
