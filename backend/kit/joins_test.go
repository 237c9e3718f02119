package kit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend/kit"
)

// A join whose caller has gone runs to its end and is undone. Until then it counts: where there are many, others
// wait, also those whose callers would wait for them.
func TestAbandonedJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		s := open(t, c).Session.(*session)
		var begun, undone, failed atomic.Int32
		joins := kit.Joins[int32]{Go: s.Go, Ended: s.Ended, Backlog: new(kit.Backlog), Undo: func(int32) {
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
		for i := range 100 {
			callers.Go(func() {
				if i >= 50 {
					time.Sleep(2 * time.Millisecond)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				if _, err := joins.Do(ctx, join); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Do returned %v to a caller that does not wait", err)
				}
			})
		}
		callers.Wait()
		if n := begun.Load(); n != 50 {
			t.Errorf("%d joins have begun, want those 50 that came first", n)
		}
		began := time.Now()
		made, err := joins.Do(t.Context(), join)
		if err != nil || made != 51 || time.Since(began).Round(10*time.Millisecond) != 3*time.Second {
			t.Errorf("Do returned %d, %v after %v, want 51 after 3 s: when the others were undone, and made", made, err, time.Since(began))
		}
		if undone.Load() != 38 || failed.Load() != 12 {
			t.Errorf("%d joins were undone, and %d cleaned up after they failed, want 38 and 12", undone.Load(), failed.Load())
		}
		s.End(errRan)
		if _, err := joins.Do(t.Context(), join); !errors.Is(err, errRan) {
			t.Errorf("Do returned %v in a session that has ended", err)
		}
	})
}
