package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

func TestPausesGrowToTheirBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backoff.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond}
		whole := []time.Duration{10, 20, 40, 50, 50}
		for range 2 {
			for _, w := range whole {
				w *= time.Millisecond
				began := time.Now()
				if err := b.Sleep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(began); d < w/2 || d > w {
					t.Errorf("a pause of %v took %v; want between a half and the whole", w, d)
				}
			}
			b.Reset()
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		b := backoff.Backoff{Min: time.Hour, Max: time.Hour}
		began := time.Now()
		if err := b.Sleep(ctx); err != enough {
			t.Errorf("got %v, want the cause of the context", err)
		}
		if d := time.Since(began); d != time.Second {
			t.Errorf("it took %v to notice", d)
		}
	})
}

// The pauses between requests to a coordinator.
func TestNew(t *testing.T) {
	b := backoff.New(t.Context())
	for most := 50 * time.Millisecond; most < 20*time.Second; most *= 2 {
		longest := min(most, 2*time.Second)
		if d := b.Next(); d < longest/2 || d > longest {
			t.Errorf("a pause of %v, want between the half of %v and the whole", d, longest)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	why, failed := errors.New("why"), errors.New("failed")
	cancel(why)
	if err := b.Cause(ended); err != why {
		t.Errorf("the cause where nothing has failed is %v", err)
	}
	b.Failed(failed)
	if err := b.Cause(ended); !errors.Is(err, why) || errors.Is(err, failed) || err.Error() != "why (before that: failed)" {
		t.Errorf("the cause is %v", err)
	}
	// That no answer came is why it took so long. What an attempt has found before another one was made is no result.
	b.Failed(fmt.Errorf("%w: %w", backend.ErrUnavailable, backend.ErrNotMember))
	if err := b.Cause(ended); !errors.Is(err, why) || !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrNotMember) {
		t.Errorf("the cause is %v", err)
	}
	b.Reset()
	if err := b.Cause(ended); err != why {
		t.Errorf("the cause after a success is %v", err)
	}
}
