package engine

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
	Moments = 5 // acts in a TTL
	quick   = 3 // of what follows, so many come in less than a quarter of TTL
)

// Lines returns the names of elections, one for each moment.
func (t *Trial) Lines() []string {
	names := make([]string, Moments)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", t.Name, i+1)
	}
	return names
}

// AtOnce does the acts, and returns what each brings, in their order. It fails the trial
// where that does not come soon after one of them, or not at once after most.
func AtOnce[T any](t *Trial, what string, act func(i int) (brings <-chan T)) []T {
	brought := make([]T, Moments)
	took := make([]time.Duration, Moments)
	var waits sync.WaitGroup
	for i := range Moments {
		if i > 0 {
			t.Pass(t.TTL/Moments, "so that the next act comes at another moment")
		}
		brings := act(i)
		done := time.Now()
		waits.Add(1)
		t.Spawn(func() {
			defer waits.Done()
			brought[i] = Await(t, brings, t.Soon(), what)
			took[i] = time.Since(done)
		})
	}
	waits.Wait()
	if t.Ctx.Err() != nil {
		t.Fatalf("%s: %v", what, context.Cause(t.Ctx))
	}
	if slices.Sort(took); took[quick-1] >= t.TTL/4 {
		t.Fatalf("%s at once: it took %v; at least %d of %d were to take less than %v", what, took, quick, Moments, t.TTL/4)
	}
	return brought
}
