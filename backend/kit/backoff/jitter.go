package backoff

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A Jitter draws the random part of pauses. The zero Jitter draws from the random source
// of the process, and is safe for concurrent use. A Jitter of a seeded context is for one
// goroutine at a time.
type Jitter struct{ seeded *rand.Rand }

// UpTo returns a random duration from 0 to most, both included.
func (j Jitter) UpTo(most time.Duration) time.Duration {
	if j.seeded == nil {
		return rand.N(most + 1)
	}
	return time.Duration(j.seeded.Int64N(int64(most) + 1))
}

// A seed is the value of a seeded context.
type seed struct {
	mu   sync.Mutex
	rand *rand.Rand
}

type seedKey struct{}

// WithSeed returns a context for which [JitterOf] returns jitters that the two numbers
// determine. With it a simulation can be repeated exactly. The seed is in a context and not in
// a global variable because many simulations run in one process at the same time.
func WithSeed(ctx context.Context, seed1, seed2 uint64) context.Context {
	return context.WithValue(ctx, seedKey{}, &seed{rand: rand.New(rand.NewPCG(seed1, seed2))})
}

// JitterOf returns the jitter for one goroutine, or one loop, that works under ctx. If ctx
// has no seed, it is the zero Jitter. With a seed each call returns another jitter, so what a
// goroutine draws does not depend on what others draw meanwhile. It does depend on the order
// of the calls of JitterOf.
func JitterOf(ctx context.Context) Jitter {
	s, ok := ctx.Value(seedKey{}).(*seed)
	if !ok {
		return Jitter{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Jitter{rand.New(rand.NewPCG(s.rand.Uint64(), s.rand.Uint64()))}
}

// Apart returns a context like ctx, for a goroutine that runs beside the caller. If ctx has a
// seed, the two then draw from different seeds, so neither changes what the other draws.
func Apart(ctx context.Context) context.Context {
	s, ok := ctx.Value(seedKey{}).(*seed)
	if !ok {
		return ctx
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return WithSeed(ctx, s.rand.Uint64(), s.rand.Uint64())
}
