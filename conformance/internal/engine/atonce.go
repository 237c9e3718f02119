package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A notification comes in milliseconds, but on a busy machine it may come as late as with a
// backend that polls. So a rule that says "at once" tries several times, and most tries must
// be quick. The tries are spread over a TTL: a backend that polls once in a TTL is late for
// most of them, whenever it polls.
const (
	Moments = 5 // tries in a TTL
	quick   = 3 // how many tries must take less than a quarter of TTL
)

// Lines returns [Moments] names of elections, one for each try of AtOnce.
func (t *Trial) Lines() []string {
	names := make([]string, Moments)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", t.Name, i+1)
	}
	return names
}

// AtOnce calls act [Moments] times. It returns the values that arrive on the channels, in the
// order of the calls. Each value must arrive soon after its call, and most of them at once.
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
		t.spawn(func() {
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
