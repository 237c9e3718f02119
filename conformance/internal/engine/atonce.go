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
	quick   = 3 // so many of their effects come in less than a quarter of TTL
)

// Lines returns the names of elections, one for each moment.
func (t *Trial) Lines() []string {
	names := make([]string, Moments)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", t.Name, i+1)
	}
	return names
}

// AtOnce calls act for each moment. It returns the values that arrive on the channels, in
// the order of the acts. Each must arrive soon after its act, and most of them at once.
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
