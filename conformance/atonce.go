package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A notification comes in milliseconds, and a machine that is busy with something else
// may be as slow as a backend that polls. So what is to come at once is tried several
// times, and most of them must be quick. The acts are spread over a TTL: whoever looks
// once in a TTL, at whatever moments, is late for most of them.
const (
	moments = 5 // acts in a TTL
	quick   = 3 // of what follows, so many come in less than a quarter of TTL
)

// lines returns the names of elections, one for each moment.
func (t *trial) lines() []string {
	names := make([]string, moments)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", t.line, i+1)
	}
	return names
}

// atOnce does the acts, and returns what each brings, in their order. It fails the trial
// where that does not come soon after one of them, or not at once after most.
func atOnce[T any](t *trial, what string, act func(i int) (brings <-chan T)) []T {
	brought := make([]T, moments)
	took := make([]time.Duration, moments)
	var waits sync.WaitGroup
	for i := range moments {
		if i > 0 {
			t.pass(t.h.TTL/moments, "so that the next act comes at another moment")
		}
		brings := act(i)
		done := time.Now()
		waits.Add(1)
		t.spawn(func() {
			defer waits.Done()
			brought[i] = await(t, brings, t.h.soon(), what)
			took[i] = time.Since(done)
		})
	}
	waits.Wait()
	if t.ctx.Err() != nil {
		t.fatalf("%s: %v", what, context.Cause(t.ctx))
	}
	if slices.Sort(took); took[quick-1] >= t.h.TTL/4 {
		t.fatalf("%s at once: it took %v; at least %d of %d were to take less than %v", what, took, quick, moments, t.h.TTL/4)
	}
	return brought
}
