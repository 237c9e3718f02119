package backoff

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// A Jitter draws what is random in pauses. The zero Jitter draws from the source of
// the process and is for any number of goroutines; one of a seeded context is for
// one goroutine at a time.
type Jitter struct{ seeded *rand.Rand }

// UpTo returns a duration between 0 and most, both included.
func (j Jitter) UpTo(most time.Duration) time.Duration {
	if j.seeded == nil {
		return rand.N(most + 1)
	}
	return time.Duration(j.seeded.Int64N(int64(most) + 1))
}

// seed is what a seeded context carries.
type seed struct {
	mu   sync.Mutex
	rand *rand.Rand
}

type seedKey struct{}

// WithSeed returns a context under which [JitterOf] returns jitters that the two
// numbers determine. It is how a simulation runs again exactly: many run at the same
// time in one process, and a context reaches whatever pauses in one of them.
func WithSeed(ctx context.Context, seed1, seed2 uint64) context.Context {
	return context.WithValue(ctx, seedKey{}, &seed{rand: rand.New(rand.NewPCG(seed1, seed2))})
}

// JitterOf returns the jitter for one goroutine, or one loop, that works under ctx:
// the zero Jitter where ctx has no seed. Under a seed each call returns another one,
// so what a goroutine draws does not depend on what others draw meanwhile; the order
// of the calls does count.
func JitterOf(ctx context.Context) Jitter {
	s, ok := ctx.Value(seedKey{}).(*seed)
	if !ok {
		return Jitter{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Jitter{rand.New(rand.NewPCG(s.rand.Uint64(), s.rand.Uint64()))}
}

// Apart returns a context like ctx for a goroutine that goes on beside the caller: under a
// seed, neither draws from what the other does.
func Apart(ctx context.Context) context.Context {
	s, ok := ctx.Value(seedKey{}).(*seed)
	if !ok {
		return ctx
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return WithSeed(ctx, s.rand.Uint64(), s.rand.Uint64())
}
