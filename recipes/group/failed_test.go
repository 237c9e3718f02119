package group_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/group"
)

// What the function of Run says when Run is told to end is not lost.
func TestRunToldToEnd(t *testing.T) {
	unsaved := errors.New("could not save")
	for _, says := range []error{nil, context.Canceled, unsaved} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			g := group.New(bubble.Client(t, c, "a"), "workers", &elect.Options{ID: "a"})
			ctx, cancel := context.WithCancelCause(t.Context())
			done := bubble.Go(func() (struct{}, error) {
				return struct{}{}, g.Run(ctx, func(ctx context.Context, _ *group.Presence) error {
					<-ctx.Done()
					return says
				})
			})
			synctest.Wait()
			cancel(errors.New("shutdown"))
			<-done.Done
			if failed := says == unsaved; errors.Is(done.Err, unsaved) != failed || errors.Is(done.Err, context.Canceled) == failed || !strings.Contains(done.Err.Error(), "shutdown") {
				t.Errorf("after %v Run returned %v", says, done.Err)
			}
		})
	}
}

// Work that fails when its item becomes another's, or when Assign ends, says so in the log.
func TestWorkFailsAtItsEnd(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		var log bytes.Buffer
		g := group.New(bubble.Client(t, c, "a"), "workers", &elect.Options{ID: "a", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		p := bubble.Must[*group.Presence](t)(g.Join(t.Context()))
		defer p.Leave(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		done := bubble.Go(func() (struct{}, error) {
			return struct{}{}, p.Assign(ctx, []string{"x"}, func(ctx context.Context, _ string, _ *elect.Term) error {
				<-ctx.Done()
				return errors.Join(ctx.Err(), errors.New("could not save"))
			})
		})
		synctest.Wait()
		cancel()
		<-done.Done
		if !errors.Is(done.Err, context.Canceled) || !strings.Contains(log.String(), "could not save") {
			t.Errorf("Assign returned %v, and the log says\n%s", done.Err, &log)
		}
	})
}
