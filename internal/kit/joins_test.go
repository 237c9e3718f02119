package kit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/internal/kit"
)

// A join whose caller has gone runs to its end and is undone, and until then it counts: a few are under way,
// however many come and go.
func TestAbandonedJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		s := open(t, c).Session.(*session)
		var begun, undone, failed atomic.Int32
		joins := kit.Joins[int32]{Life: s.Life, Undo: func(int32) {
			time.Sleep(time.Second)
			undone.Add(1)
		}}
		join := func() (int32, func(), error) {
			n := begun.Add(1)
			time.Sleep(time.Second)
			if n%4 == 0 {
				return 0, func() { failed.Add(1) }, errRan
			}
			return n, nil, nil
		}
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				if _, err := joins.Do(ctx, join); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Do returned %v to a caller that does not wait", err)
				}
			})
		}
		callers.Wait()
		if n := begun.Load(); n != 32 {
			t.Errorf("%d joins have begun, want 32", n)
		}
		began := time.Now()
		made, err := joins.Do(t.Context(), join) // in the place of one that has failed
		if err != nil || made != 33 || time.Since(began).Round(10*time.Millisecond) != 2*time.Second {
			t.Errorf("Do returned %d, %v after %v, want 33 after 2 s", made, err, time.Since(began))
		}
		synctest.Wait()
		if undone.Load() != 24 || failed.Load() != 8 {
			t.Errorf("%d joins were undone, and %d cleaned up after they failed, want 24 and 8", undone.Load(), failed.Load())
		}
		s.End(errRan)
		if _, err := joins.Do(t.Context(), join); !errors.Is(err, errRan) {
			t.Errorf("Do returned %v in a session that has ended", err)
		}
	})
}
