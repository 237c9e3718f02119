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
	moments = 5 // tries in a TTL
	quick   = 3 // how many tries must take less than a quarter of TTL
)

// Apart opens a client for each try of [AtOnce], each in an election of its own.
func (t *Trial) Apart() []*Client {
	cs := t.Clients(moments)
	for i, c := range cs {
		cs[i] = c.In(fmt.Sprintf("%s-%d", t.Name, i+1))
	}
	return cs
}

// AtOnce calls act with the index of each client of [Trial.Apart]. It returns the values that
// arrive on the channels, in the order of the calls. Each value must arrive soon after its call,
// and most of them at once.
func AtOnce[T any](t *Trial, what string, act func(i int) (brings <-chan T)) []T {
	brought := make([]T, moments)
	took := make([]time.Duration, moments)
	var waits sync.WaitGroup
	for i := range moments {
		if i > 0 {
			t.Pass(t.TTL/moments, "so that the next act comes at another moment")
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
		t.Fatalf("%s at once: it took %v; at least %d of %d were to take less than %v", what, took, quick, moments, t.TTL/4)
	}
	return brought
}
