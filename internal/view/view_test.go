package view_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

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
		hold func(context.Context, *memory.Backend) (term, error)
	}{
		"a lock": {name, func(ctx context.Context, b *memory.Backend) (term, error) {
			return lock.NewMutex(b, name, nil).Lock(ctx)
		}},
		"a lock together with others": {name, func(ctx context.Context, b *memory.Backend) (term, error) {
			return lock.NewRWMutex(b, name, nil).RLock(ctx)
		}},
		"a slot": {name + "-slots", func(ctx context.Context, b *memory.Backend) (term, error) {
			return lock.NewSemaphore(b, name, 2, nil).Acquire(ctx)
		}},
		"an item": {name + "-claims", func(ctx context.Context, b *memory.Backend) (term, error) {
			q := queue.New(b, name, nil)
			if err := q.Put(ctx, "x"); err != nil {
				return nil, err
			}
			return q.Take(ctx)
		}},
		"a presence": {name + "-members", func(ctx context.Context, b *memory.Backend) (term, error) {
			return group.New(b, name, nil).Join(ctx)
		}},
		"a place inside a barrier": {name + "-arrivals", func(ctx context.Context, b *memory.Backend) (term, error) {
			return barrier.NewDouble(b, name, 1, nil).Enter(ctx)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				h := bubble.Must[term](t)(test.hold(t.Context(), bubble.Client(t, c, "holder")))
				time.Sleep(bubble.TTL) // Take resigns its turn
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

// A term is what the holders have in common.
type term interface {
	Context() context.Context
	Resign(context.Context) error
}
