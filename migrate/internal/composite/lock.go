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

// first calls all of fs at the same time and cancels the others when one returns. It
// returns, when all have, the index of the first and its error.
func first(ctx context.Context, fs ...func(context.Context) error) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		index int
		err   error
	}
	results := make(chan result, len(fs))
	var wg sync.WaitGroup
	for i, f := range fs {
		wg.Go(func() { results <- result{i, f(ctx)} })
	}
	r := <-results
	cancel()
	wg.Wait()
	return r.index, r.err
}
