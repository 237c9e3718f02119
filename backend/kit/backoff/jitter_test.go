package backoff_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
)

// draws returns the first pause of one loop and five pauses of another, under a context with a
// seed. The first loop pauses between times before each pause of the second.
func draws(ctx context.Context, between int) []time.Duration {
	first := backoff.Backoff{Min: time.Second, Max: time.Hour, Jitter: backoff.JitterOf(ctx)}
	second := backoff.Backoff{Min: time.Second, Max: time.Hour, Jitter: backoff.JitterOf(ctx)}
	out := []time.Duration{first.Next()}
	for range 5 {
		for range between {
			first.Next()
		}
		out = append(out, second.Next())
	}
	return out
}

// A seed determines what every loop draws, whatever the other loops do meanwhile.
func TestSeedDeterminesJitter(t *testing.T) {
	seeded := func(a, b uint64) context.Context { return backoff.WithSeed(t.Context(), a, b) }
	want := draws(seeded(1, 2), 0)
	if got := draws(seeded(1, 2), 3); !slices.Equal(got, want) {
		t.Errorf("the same seed brought %v and then %v", want, got)
	}
	for _, ctx := range []context.Context{seeded(1, 3), seeded(2, 2), t.Context(), t.Context()} {
		if got := draws(ctx, 0); slices.Equal(got, want) {
			t.Errorf("another seed, or none, brought the same %v", got)
		}
	}
}

func TestJitterStaysInItsBounds(t *testing.T) {
	for _, j := range []backoff.Jitter{{}, backoff.JitterOf(backoff.WithSeed(t.Context(), 1, 2))} {
		seen := make(map[time.Duration]bool)
		for range 1000 {
			d := j.UpTo(3)
			if d < 0 || d > 3 {
				t.Fatalf("%v is not between 0 and 3 ns", d)
			}
			seen[d] = true
		}
		if len(seen) != 4 {
			t.Errorf("of 0 to 3 ns only %v were drawn", seen)
		}
	}
}
