package again_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
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

// What passes is tried again after a pause, what has waited at once, and nothing after the end of ctx.
func TestUntil(t *testing.T) {
	unavailable, enough := backend.ErrUnavailable, errEnough
	tests := []struct {
		name   string
		errs   []error // of each call; nil is a success, and the last one is done
		within time.Duration
		want   []error // all that the error is; none for success
		calls  int
		paused bool
	}{
		{name: "done", errs: []error{nil}, calls: 1},
		{name: "waited", errs: []error{nil, nil, nil}, calls: 3},
		{name: "passes", errs: []error{unavailable, nil}, calls: 2, paused: true},
		{name: "stays", errs: []error{unavailable, backend.ErrDenied, nil}, want: []error{backend.ErrDenied}, calls: 2, paused: true},
		{name: "ends in a pause", errs: []error{unavailable, nil}, within: time.Millisecond, want: []error{enough, unavailable}, calls: 1, paused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeoutCause(ctx, tt.within, enough)
					defer cancel()
				}
				calls, began := 0, time.Now()
				err := again.Until(ctx, again.Passing, func() (bool, error) {
					calls++
					return calls == len(tt.errs), tt.errs[calls-1]
				})
				if calls != tt.calls || (time.Since(began) > 0) != tt.paused {
					t.Errorf("%d calls in %v; want %d, with a pause: %t", calls, time.Since(began), tt.calls, tt.paused)
				}
				if (err == nil) != (tt.want == nil) {
					t.Fatalf("got %v, want %v", err, tt.want)
				}
				for _, want := range tt.want {
					if !errors.Is(err, want) {
						t.Errorf("got %v, want %v", err, want)
					}
				}
			})
		})
	}
}

// What a call has found out is told, also if ctx has ended meanwhile: an error that passes with the cause of ctx. An error that
// says no more than that ctx has ended is told with what has failed before.
func TestUntilItsContextEnds(t *testing.T) {
	for _, tt := range []struct{ last, want error }{
		{backend.ErrDenied, backend.ErrDenied},
		{backend.ErrUnavailable, errEnough},
		{errEnough, errEnough},
		{context.Canceled, errEnough},
		{nil, errEnough}, // it has waited, and is not done
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		err := again.Until(ctx, again.Passing, func() (bool, error) { cancel(errEnough); return false, tt.last })
		if !errors.Is(err, tt.want) || errors.Is(tt.want, errEnough) == errors.Is(err, backend.ErrDenied) {
			t.Errorf("after %v: got %v, want %v", tt.last, err, tt.want)
		}
		if errors.Is(tt.last, backend.ErrUnavailable) != errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("after %v: got %v", tt.last, err)
		}
	}
}
