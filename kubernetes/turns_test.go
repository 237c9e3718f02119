package kubernetes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// However many requests are to be sent, a bounded number is under way; urgent ones have room of their own, and a renewal waits for nothing.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		given := make(map[rank]chan func())
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, 3*maxTurns)
		for _, r := range []rank{ordinary, urgent} {
			given[r] = make(chan func(), 3*maxTurns)
			for range 2 * maxTurns { // urgent ones come last: the ordinary ones have taken all that they may
				go func() {
					give, err := turns.take(ranked(ctx, r))
					if err != nil {
						failed <- err
						return
					}
					given[r] <- give
				}()
			}
			synctest.Wait()
		}
		if n, m := len(given[ordinary]), len(given[urgent]); n != maxTurns || m != maxUrgent {
			t.Errorf("%d requests are under way, and %d urgent ones, want %d and %d", n, m, maxTurns, maxUrgent)
		}
		for range 2 {
			if _, err := turns.take(ranked(ctx, atOnce)); err != nil {
				t.Errorf("a renewal: %v", err)
			}
		}
		for range maxUrgent {
			(<-given[urgent])()
		}
		synctest.Wait()
		if n := len(given[urgent]); n != maxUrgent {
			t.Errorf("when %d urgent requests are answered, %d others are sent", maxUrgent, n)
		}
		(<-given[ordinary])()
		synctest.Wait()
		if n := len(given[ordinary]) + len(given[urgent]); n != maxTurns+maxUrgent {
			t.Errorf("when one is answered, %d are under way, want %d", n, maxTurns+maxUrgent)
		}
		why := errors.New("given up")
		cancel(why)
		synctest.Wait()
		for range len(failed) {
			if err := <-failed; err != why {
				t.Errorf("who gives up is told %v", err)
			}
		}
	})
}
