package view_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/barrier"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Whoever holds something sends heartbeats, and nothing else. It hears all the same that it was
// removed, at once.
func TestHoldersAtRest(t *testing.T) {
	const name = "name"
	for what, test := range map[string]struct {
		line string
		hold func(context.Context, *memory.Backend) (*elect.Term, error)
	}{
		"a lock": {name, func(ctx context.Context, b *memory.Backend) (*elect.Term, error) {
			return termOf(lock.NewMutex(b, name, nil).Lock(ctx))
		}},
		"a lock together with others": {name, func(ctx context.Context, b *memory.Backend) (*elect.Term, error) {
			return termOf(lock.NewRWMutex(b, name, nil).RLock(ctx))
		}},
		"a slot": {name + "-slots", func(ctx context.Context, b *memory.Backend) (*elect.Term, error) {
			return termOf(lock.NewSemaphore(b, name, 2, nil).Acquire(ctx))
		}},
		"an item": {name + "-claims", func(ctx context.Context, b *memory.Backend) (*elect.Term, error) {
			q := queue.New(b, name, nil)
			if _, err := q.Put(ctx, "x"); err != nil {
				return nil, err
			}
			return termOf(q.Take(ctx))
		}},
		"a presence": {name + "-members", func(ctx context.Context, b *memory.Backend) (*elect.Term, error) {
			return termOf(group.New(b, name, nil).Join(ctx))
		}},
		"a place inside a barrier": {name + "-arrivals", func(ctx context.Context, b *memory.Backend) (*elect.Term, error) {
			return termOf(barrier.NewDouble(b, name, 1, nil).Enter(ctx))
		}},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				h := bubble.Must[*elect.Term](t)(test.hold(t.Context(), bubble.Client(t, c, "holder")))
				time.Sleep(bubble.TTL)
				before := c.Requests()
				time.Sleep(20 * bubble.TTL)
				sent := c.Requests().Since(before)
				if n := sent.Total() - sent.Total(memory.OpHeartbeat); n != 0 || sent.Total() == 0 {
					t.Errorf("in twenty TTL it sends %v, want heartbeats alone", sent)
				}
				for _, m := range c.Members(test.line) {
					c.Remove(m.Line, m.Key)
				}
				synctest.Wait()
				if time.Sleep(time.Second); h.Context().Err() == nil {
					t.Error("a second after it was removed it does not know")
				}
				if err := h.Resign(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// termOf is the term by which something is held.
func termOf[H interface{ Term() *elect.Term }](h H, err error) (*elect.Term, error) {
	if err != nil {
		return nil, err
	}
	return h.Term(), nil
}
