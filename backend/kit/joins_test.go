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
		joins := kit.Joins[int32]{Go: s.Go, Ended: s.Ended, Backlog: new(kit.Backlog), Undo: func(int32) error {
			time.Sleep(time.Second)
			undone.Add(1)
			return nil
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
		if _, err := joins.Do(t.Context(), join); !saysRan(err) {
			t.Errorf("Do returned %v in a session that has ended", err)
		}
	})
}

// What a join has made for a caller that has gone, and what cannot be removed, ends the session: others would wait behind it.
func TestJoinThatCannotBeUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		s := open(t, c).Session.(*session)
		var ended []error
		joins := kit.Joins[int]{Go: s.Go, Ended: s.Ended, Backlog: new(kit.Backlog), Undo: func(int) error { return errRan },
			End: func(why error) { ended = append(ended, why); s.End(why) }}
		abandon(t, &joins, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(ended) != 1 || !errors.Is(ended[0], errRan) || !saysRan(s.Err()) {
			t.Errorf("the session has ended because of %v, %v; want what kept the member from being removed", ended, s.Err())
		}
		joins.Discard(1)
		if len(ended) != 1 {
			t.Errorf("a session that has ended was ended again: %v", ended)
		}
	})
}

// abandon begins so many joins, each of a second, whose callers go after a millisecond.
func abandon(t *testing.T, joins *kit.Joins[int], n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			_, err := joins.Do(ctx, func() (int, func(), error) { time.Sleep(time.Second); return 0, nil, nil })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Do returned %v to a caller that does not wait", err)
			}
		})
	}
	callers.Wait()
}

// A join that fails while its caller waits is cleaned up as well, and others wait for that where there are many. A caller
// whose turn does not come in time is told why.
func TestFailedJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		s := open(t, c).Session.(*session)
		joins := kit.Joins[int]{Go: s.Go, Ended: s.Ended, Backlog: new(kit.Backlog), Undo: func(int) error { return nil }}
		var callers sync.WaitGroup
		for range 32 {
			callers.Go(func() {
				_, err := joins.Do(t.Context(), func() (int, func(), error) {
					return 0, func() { time.Sleep(5 * time.Second) }, errRan
				})
				if !errors.Is(err, errRan) {
					t.Errorf("Do returned %v", err)
				}
			})
		}
		callers.Wait()
		synctest.Wait()
		ran := false
		join := func() (int, func(), error) { ran = true; return 5, nil, nil }
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errRan)
		defer cancel()
		if _, err := joins.Do(ctx, join); !errors.Is(err, errRan) || ran {
			t.Errorf("while much is cleaned up: %v, and the join ran: %t", err, ran)
		}
		began := time.Now()
		if made, err := joins.Do(t.Context(), join); made != 5 || err != nil || time.Since(began) != 4*time.Second {
			t.Errorf("after %v: %d, %v", time.Since(began), made, err)
		}
	})
}
