package task_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/task"
)

// An interrupted session calls before when the error of a run is about to be written, and does not write it.
type interrupted struct {
	backend.Session
	before func()
}

func (s interrupted) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if name == "bus-position/orders" && strings.Contains(string(value), "disk full") {
		s.before()
		return 0, backend.ErrUnavailable
	}
	return s.Session.Put(ctx, name, value, cond)
}

// The error with which a run has ended is what Hot returns, whatever happens while it is written down.
func TestEndsWhileItsErrorIsWritten(t *testing.T) {
	for what, before := range map[string]func(f *floor, b *memory.Backend, end func()){
		"cut off":     func(_ *floor, b *memory.Backend, _ func()) { b.Cut() },
		"expired":     func(_ *floor, b *memory.Backend, _ func()) { b.Expire() },
		"stopped":     func(f *floor, _ *memory.Backend, _ func()) { ok(f.t, f.console.Stop(f.t.Context(), "orders")) },
		"told to end": func(_ *floor, _ *memory.Backend, end func()) { end() },
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				f, full := newFloor(t, c), errors.New("disk full")
				ok(t, f.console.Start(t.Context(), "orders"))
				ctx, cancel := context.WithTimeoutCause(t.Context(), 10*bubble.TTL, errors.New("it was run again"))
				defer cancel()
				b, runs := bubble.Client(t, c, "a"), 0
				err := task.NewStandby(view.Of(b, func(s backend.Session) backend.Session {
					return interrupted{s, func() {
						before(f, b, cancel)
						synctest.Wait()
					}}
				}), "bus", nil).Hot(ctx, "orders", func(ctx context.Context, _ *task.Run) error {
					if runs++; runs == 1 {
						return full
					}
					<-ctx.Done()
					return nil
				})
				if err != full || runs != 1 {
					t.Errorf("after %d runs Hot returned %v", runs, err)
				}
			})
		})
	}
}
