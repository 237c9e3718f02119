package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// standing is how many ask for the lock.
func standing(c *memory.Coordinator, name string) int { return len(c.Members(name)) }

// Those who ask hold the lock one after the other, in the order in which they asked, and each
// exit wakes one.
func TestMutexIsFairAndWakesOne(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		const waiters = 20
		order := make(chan int, waiters)
		tokens := make(chan uint64, waiters+1)
		first := bubble.Must[*lock.Held](t)(lock.NewMutex(bubble.Client(t, c, "first"), "jobs", nil).Lock(t.Context()))
		tokens <- first.Token()
		done := make(chan error, waiters)
		for i := range waiters {
			m := lock.NewMutex(bubble.Client(t, c, "w"), "jobs", nil)
			go func() {
				h, err := m.Lock(t.Context())
				if err == nil {
					order <- i
					tokens <- h.Token()
					err = h.Unlock(t.Context())
				}
				done <- err
			}()
			synctest.Wait()
		}
		before := c.Wakeups()
		if err := first.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range waiters {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		for i := range waiters {
			if got := <-order; got != i {
				t.Fatalf("number %d held the lock in turn %d", got, i)
			}
		}
		last := uint64(0)
		for range waiters + 1 {
			if token := <-tokens; token <= last {
				t.Errorf("token %d after %d", token, last)
			} else {
				last = token
			}
		}
		// Each of those who leave wakes who stands behind, and its own watch ends with its term.
		if woken := c.Wakeups().Since(before).Total(); woken > 2*(waiters+1) {
			t.Errorf("%d exits have woken %d", waiters+1, woken)
		}
	})
}

func TestTryLock(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := lock.NewMutex(bubble.Client(t, c, "a"), "jobs", nil), lock.NewMutex(bubble.Client(t, c, "b"), "jobs", nil)
		h := bubble.Must[*lock.Held](t)(a.TryLock(t.Context()))
		_, err := b.TryLock(t.Context())
		bubble.Want(t, err, lock.ErrLocked)
		if n := standing(c, "jobs"); n != 1 {
			t.Errorf("%d stand in line after a TryLock that failed, want the holder alone", n)
		}
		if err := h.Check(); err != nil {
			t.Errorf("TryLock of another has disturbed the holder: %v", err)
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		h = bubble.Must[*lock.Held](t)(b.TryLock(t.Context()))
		h.Unlock(t.Context())
		if n := standing(c, "jobs"); n != 0 {
			t.Errorf("%d stand in line after the end", n)
		}
	})
}

// While All waits for one lock, it is told that one which it has was lost.
func TestAllIsToldWhileItWaits(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		h := bubble.Must[*lock.Held](t)(lock.NewMutex(bubble.Client(t, c, "b"), "second", nil).Lock(t.Context()))
		defer h.Unlock(t.Context())
		b := bubble.Client(t, c, "a")
		end := make(chan error, 1)
		go func() {
			_, err := lock.All(t.Context(), lock.NewMutex(b, "first", nil), lock.NewMutex(b, "second", nil))
			end <- err
		}()
		synctest.Wait()
		c.Remove("first", c.Members("first")[0].Key)
		select {
		case err := <-end:
			bubble.Want(t, err, elect.ErrLost)
		case <-time.After(time.Minute):
			t.Error("All waits for the second lock a minute after it has lost the first")
			h.Unlock(t.Context())
			<-end
		}
	})
}

// Who asks for a lock that the process holds itself waits for itself. Its error says who stands in front.
func TestLockByItself(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		m := lock.NewMutex(bubble.Client(t, c, "a"), "jobs", &elect.Options{ID: "web-7"})
		h := bubble.Must[*lock.Held](t)(m.Lock(t.Context()))
		defer h.Unlock(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := m.Lock(ctx)
		want := "waiting behind " + h.Term().Member().Key + ` ("web-7")`
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
			t.Errorf("Lock by who has it already: %v, want the deadline and %q", err, want)
		}
	})
}

// While the coordinator cannot be reached, TryLock waits for it and for nothing else.
func TestTryLockWaitsForTheCoordinator(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		m := lock.NewMutex(bubble.Client(t, c, "a"), "jobs", nil)
		c.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := m.TryLock(ctx)
		bubble.Want(t, err, context.DeadlineExceeded)
		if errors.Is(err, lock.ErrLocked) {
			t.Errorf("%v: nobody holds the lock", err)
		}
		c.Resume()
		bubble.Must[*lock.Held](t)(m.TryLock(t.Context())).Unlock(t.Context())
	})
}

// A holder whose session ends loses the lock, and knows it.
func TestLoss(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a := bubble.Client(t, c, "a")
		h := bubble.Must[*lock.Held](t)(lock.NewMutex(a, "jobs", nil).Lock(t.Context()))
		next := make(chan *lock.Held)
		m := lock.NewMutex(bubble.Client(t, c, "b"), "jobs", nil)
		go func() {
			h, err := m.Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- h
		}()
		synctest.Wait()
		a.Expire()
		<-h.Context().Done()
		bubble.Want(t, h.Check(), elect.ErrLost)
		_, err := h.Put(t.Context(), "jobs-position", []byte("1"), backend.Any)
		bubble.Want(t, err, backend.ErrSessionEnded)
		after := <-next
		if after.Token() <= h.Token() {
			t.Errorf("token %d after %d", after.Token(), h.Token())
		}
		if err := h.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock of a lost lock: %v", err)
		}
		if err := after.Check(); err != nil {
			t.Errorf("Unlock of a lost lock has unlocked that of another: %v", err)
		}
		after.Unlock(t.Context())
	})
}

// Two processes that want the same locks in opposite orders both get them.
func TestAllHasOneOrder(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		done := make(chan error, 2)
		for _, names := range [][]string{{"x", "y", "z"}, {"z", "y", "x"}} {
			b := bubble.Client(t, c, names[0])
			var locks []*lock.Mutex
			for _, name := range names {
				locks = append(locks, lock.NewMutex(b, name, nil))
			}
			go func() {
				var err error
				for range 20 {
					var all *lock.HeldAll
					if all, err = lock.All(t.Context(), locks...); err != nil {
						break
					}
					time.Sleep(time.Millisecond)
					if err = errors.Join(all.Check(), all.Unlock(t.Context())); err != nil {
						break
					}
				}
				done <- err
			}()
		}
		for range 2 {
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Hour):
				t.Fatal("they wait for each other")
			}
		}
	})
}

func TestAllOrNone(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := bubble.Client(t, c, "a"), bubble.Client(t, c, "b")
		held := bubble.Must[*lock.Held](t)(lock.NewMutex(b, "y", nil).Lock(t.Context()))
		locks := []*lock.Mutex{lock.NewMutex(a, "x", nil), lock.NewMutex(a, "y", nil), lock.NewMutex(a, "z", nil)}
		_, err := lock.TryAll(t.Context(), locks...)
		bubble.Want(t, err, lock.ErrLocked)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = lock.All(ctx, locks...)
		bubble.Want(t, err, context.DeadlineExceeded)
		for name, n := range map[string]int{"x": 0, "y": 1, "z": 0} {
			if got := standing(c, name); got != n {
				t.Errorf("%d stand in the line of %s, want %d", got, name, n)
			}
		}
		held.Unlock(t.Context())

		all := bubble.Must[*lock.HeldAll](t)(lock.TryAll(t.Context(), locks...))
		if n := len(all.Locks()); n != 3 || !all.Deadline().After(time.Now()) {
			t.Errorf("%d locks until %v", n, all.Deadline())
		}
		c.Remove("y", all.Locks()[1].Term().Member().Key)
		<-all.Context().Done()
		bubble.Want(t, context.Cause(all.Context()), elect.ErrRemoved)
		bubble.Want(t, all.Check(), elect.ErrRemoved)
		if err := all.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A lock that is lost while All waits for the next one is not handed out.
func TestAllLosesOneWhileItWaits(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := bubble.Client(t, c, "a"), bubble.Client(t, c, "b")
		held := bubble.Must[*lock.Held](t)(lock.NewMutex(b, "y", nil).Lock(t.Context()))
		failed := make(chan error)
		go func() {
			_, err := lock.All(t.Context(), lock.NewMutex(a, "x", nil), lock.NewMutex(a, "y", nil))
			failed <- err
		}()
		synctest.Wait()
		c.Remove("x", c.Members("x")[0].Key)
		synctest.Wait()
		held.Unlock(t.Context())
		bubble.Want(t, <-failed, elect.ErrRemoved)
		if n := standing(c, "x") + standing(c, "y"); n != 0 {
			t.Errorf("%d stand in line", n)
		}
	})
}

func TestArguments(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		_, err := lock.NewMutex(b, "no//name", nil).Lock(t.Context())
		bubble.Want(t, err, backend.ErrInvalid)
		_, err = lock.All(t.Context())
		bubble.Want(t, err, backend.ErrInvalid)
		_, err = lock.All(t.Context(), lock.NewMutex(b, "x", nil), lock.NewMutex(b, "x", nil))
		bubble.Want(t, err, backend.ErrInvalid)
		if !strings.Contains(err.Error(), "x twice") {
			t.Error(err)
		}
	})
}
