package composite

import (
	"context"
	"sync"

	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A lock is a mutex for requests to a coordinator, which take long. A goroutine that waits for it
// may give up.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

// take takes the lock, unless ctx ends first.
func (l lock) take(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l lock) release() { <-l }

// Both calls f for both sides at the same time.
func Both(f func(sd protocol.Side)) {
	var wg sync.WaitGroup
	wg.Go(func() { f(protocol.From) })
	wg.Go(func() { f(protocol.To) })
	wg.Wait()
}
