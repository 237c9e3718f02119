package again_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/memory"
)

var errEnough = errors.New("enough")

// What ForAWhile returns is never about the context that it has made.
func TestForAWhile(t *testing.T) {
	broken := errors.New("broken")
	tests := map[string]struct {
		watch func(ctx context.Context, end func()) error
		want  error
	}{
		"a change":        {func(context.Context, func()) error { return nil }, nil},
		"an error":        {func(context.Context, func()) error { return broken }, broken},
		"nothing":         {func(ctx context.Context, _ func()) error { <-ctx.Done(); return context.Cause(ctx) }, nil},
		"the caller ends": {func(ctx context.Context, end func()) error { end(); <-ctx.Done(); return context.Cause(ctx) }, errEnough},
		"the caller ends when it is time to look again": {func(ctx context.Context, end func()) error {
			<-ctx.Done()
			defer end()
			return context.Cause(ctx)
		}, errEnough},
		"a change when it is time to look again": {func(ctx context.Context, end func()) error { <-ctx.Done(); end(); return nil }, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := memory.New(&memory.Options{TTL: time.Second})
				b := c.Client("a")
				defer b.Close()
				s, err := b.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				err = again.ForAWhile(ctx, s, backoff.JitterOf(ctx), func(ctx context.Context) error {
					return tt.watch(ctx, func() { cancel(errEnough) })
				})
				if err != tt.want {
					t.Errorf("it returned %v, want %v", err, tt.want)
				}
			})
		})
	}
}
