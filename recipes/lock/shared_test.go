package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/lock"
)

// asked is a call that asks for a lock in the background.
type asked = bubble.Call[*lock.Held]

func ask(t *testing.T, call func(context.Context) (*lock.Held, error)) *asked {
	return bubble.Go(func() (*lock.Held, error) { return call(t.Context()) })
}

// release unlocks, and returns how many calls of each client that has woken.
func release(t *testing.T, c *memory.Coordinator, a *asked) memory.Counts {
	t.Helper()
	before := c.Wakeups()
	if err := a.Value.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return c.Wakeups().Since(before)
}

// who returns the clients that were woken, but for the one itself.
func who(n memory.Counts, but string) (names []string) {
	for s := range n {
		if s.Client != but && (s.Op == memory.OpGone || s.Op == memory.OpWatchPlace) {
			names = append(names, s.Client)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Readers pass together, no reader passes a writer, and an exit wakes whoever can go on.
func TestRWMutex(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		mutex := func(name string) *lock.RWMutex { return lock.NewRWMutex(bubble.Client(t, c, name), "jobs", nil) }
		w1 := ask(t, mutex("w1").Lock)
		r1, r2 := ask(t, mutex("r1").RLock), ask(t, mutex("r2").RLock)
		w2 := ask(t, mutex("w2").Lock)
		r3, r4 := ask(t, mutex("r3").RLock), ask(t, mutex("r4").RLock)
		expect := func(what string, who ...*asked) {
			t.Helper()
			for i, a := range []*asked{w1, r1, r2, w2, r3, r4} {
				if a.Returned(t) && a.Value.Check() == nil != slices.Contains(who, a) || !a.Returned(t) && slices.Contains(who, a) {
					t.Errorf("%s: the state of number %d is wrong", what, i)
				}
			}
		}
		woken := func(got memory.Counts, by string, want ...string) {
			t.Helper()
			if names := who(got, by); !slices.Equal(names, want) {
				t.Errorf("the exit of %s has woken %v, want %v", by, names, want)
			}
		}
		expect("at first", w1)
		woken(release(t, c, w1), "w1", "r1", "r2")
		expect("when the writer has left", r1, r2)
		woken(release(t, c, r1), "r1") // w2 waits for r2, who is just in front
		expect("when one reader has left", r2)
		woken(release(t, c, r2), "r2", "w2")
		expect("when both readers have left", w2)
		if !(w1.Value.Token() < r1.Value.Token() && r1.Value.Token() < r2.Value.Token() && r2.Value.Token() < w2.Value.Token()) {
			t.Error("the tokens do not grow")
		}
		woken(release(t, c, w2), "w2", "r3", "r4")
		expect("when the second writer has left", r3, r4)
		release(t, c, r3)
		release(t, c, r4)
	})
}

func TestTryRLock(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := lock.NewRWMutex(bubble.Client(t, c, "a"), "jobs", nil), lock.NewRWMutex(bubble.Client(t, c, "b"), "jobs", nil)
		one := bubble.Must[*lock.Held](t)(a.TryRLock(t.Context()))
		two := bubble.Must[*lock.Held](t)(b.TryRLock(t.Context()))
		_, err := a.TryLock(t.Context())
		bubble.Want(t, err, lock.ErrLocked)
		one.Unlock(t.Context())
		two.Unlock(t.Context())
		writer := bubble.Must[*lock.Held](t)(a.TryLock(t.Context()))
		_, err = b.TryRLock(t.Context())
		bubble.Want(t, err, lock.ErrLocked)
		writer.Unlock(t.Context())
		if n := standing(c, "jobs"); n != 0 {
			t.Errorf("%d stand in line", n)
		}
	})
}

// A reader that is cut off loses the lock before the writer behind it gets it.
func TestReaderIsCutOff(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		r := bubble.Client(t, c, "r")
		reader := ask(t, lock.NewRWMutex(r, "jobs", nil).RLock)
		writer := ask(t, lock.NewRWMutex(bubble.Client(t, c, "w"), "jobs", nil).Lock)
		r.Cut()
		lost := make(chan time.Time, 1)
		context.AfterFunc(reader.Value.Context(), func() { lost <- time.Now() })
		<-writer.Done
		got := time.Now()
		if writer.Err != nil || !(<-lost).Before(got) {
			t.Errorf("the writer holds the lock (%v) before the reader has lost it", writer.Err)
		}
		bubble.Want(t, reader.Value.Check(), elect.ErrLost)
		r.Heal()
		release(t, c, writer)
		reader.Value.Unlock(t.Context())
	})
}

// Never more than n hold a slot, each free slot is taken, and an exit wakes at most two.
func TestSemaphore(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		const n, all = 3, 10
		var calls []*asked
		for i := range all {
			s := lock.NewSemaphore(bubble.Client(t, c, fmt.Sprint("c", i)), "jobs", n, nil)
			calls = append(calls, ask(t, s.Acquire))
		}
		_, err := lock.NewSemaphore(bubble.Client(t, c, "try"), "jobs", n, nil).TryAcquire(t.Context())
		bubble.Want(t, err, lock.ErrLocked)
		for held, left := []int{0, 1, 2}, all; left > 0; left-- {
			if stand := standing(c, "jobs-slots"); stand > n+1 {
				t.Fatalf("%d stand in the line of the holders", stand)
			}
			for i, a := range calls {
				if holds := a.Returned(t) && a.Value.Check() == nil; holds != slices.Contains(held, i) {
					t.Fatalf("with %d left, number %d holds a slot: %v; want %v to hold one", left, i, holds, held)
				}
			}
			leaves := held[left%len(held)]
			var waiting []string // others may still be told of those that they waited for
			for i, a := range calls {
				if !a.Returned(t) {
					waiting = append(waiting, fmt.Sprint("c", i))
				}
			}
			woken := who(release(t, c, calls[leaves]), "")
			if woken = slices.DeleteFunc(woken, func(name string) bool { return !slices.Contains(waiting, name) }); len(woken) > 2 {
				t.Errorf("of those who wait, one exit has woken %v", woken)
			}
			held = slices.DeleteFunc(held, func(i int) bool { return i == leaves })
			if next := all - left + n; next < all {
				held = append(held, next)
			}
		}
		for _, line := range []string{"jobs-slots", "jobs-waiting"} {
			if stand := standing(c, line); stand != 0 {
				t.Errorf("%d stand in the line %s", stand, line)
			}
		}
		bubble.Must[*lock.Held](t)(lock.NewSemaphore(bubble.Client(t, c, "try again"), "jobs", n, nil).TryAcquire(t.Context())).Unlock(t.Context())
	})
}

// Whoever dies gives its slot back, and so does whoever dies while it waits for one.
func TestSemaphoreOfTheDead(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		sem := func(name string) (*memory.Backend, *asked) {
			b := bubble.Client(t, c, name)
			return b, ask(t, lock.NewSemaphore(b, "jobs", 2, nil).Acquire)
		}
		holder, one := sem("one")
		_, two := sem("two")
		waiter, three := sem("three")
		_, four := sem("four")
		waiter.Expire() // it stands at the end of a line again
		time.Sleep(bubble.TTL)
		if three.Returned(t) || four.Returned(t) {
			t.Fatal("more than two hold a slot")
		}
		holder.Expire()
		time.Sleep(bubble.TTL)
		bubble.Want(t, one.Value.Check(), elect.ErrLost)
		if !two.Returned(t) || three.Returned(t) == four.Returned(t) {
			t.Fatalf("two, three, four hold a slot: %v, %v, %v; want two and one of the others", two.Returned(t), three.Returned(t), four.Returned(t))
		}
		release(t, c, two)
		if !three.Returned(t) || !four.Returned(t) {
			t.Fatal("the slot of two is free")
		}
		for _, a := range []*asked{one, three, four} {
			a.Value.Unlock(t.Context())
		}
	})
}

func TestSemaphoreArguments(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		for _, n := range []int{0, -1} {
			_, err := lock.NewSemaphore(bubble.Client(t, c, "a"), "jobs", n, nil).Acquire(t.Context())
			bubble.Want(t, err, backend.ErrInvalid)
			if !strings.Contains(err.Error(), "jobs") {
				t.Error(err)
			}
		}
		for _, name := range []string{"", "jobs/", "jobs/.."} { // with a suffix they would be names
			_, err := lock.NewSemaphore(bubble.Client(t, c, "a"), name, 2, nil).TryAcquire(t.Context())
			bubble.Want(t, err, backend.ErrInvalid)
		}
	})
}

// Where there are no shared members, it is said so, and a Mutex works.
func TestWithoutSharedMembers(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := view.Of(bubble.Client(t, c, "a"), bubble.NoShares)
		_, err := lock.NewRWMutex(b, "jobs", nil).RLock(t.Context())
		bubble.Want(t, err, errors.ErrUnsupported)
		if !strings.Contains(err.Error(), "use a Mutex") {
			t.Errorf("%v does not say what to do", err)
		}
		_, err = lock.NewSemaphore(b, "jobs", 2, nil).Acquire(t.Context())
		bubble.Want(t, err, errors.ErrUnsupported)
		bubble.Must[*lock.Held](t)(lock.NewMutex(b, "jobs", nil).Lock(t.Context())).Unlock(t.Context())
		for _, line := range []string{"jobs", "jobs-slots", "jobs-waiting"} {
			if n := standing(c, line); n != 0 {
				t.Errorf("%d stand in the line %s", n, line)
			}
		}
	})
}

// A pause also holds for those who would share what is let go of: they stand in front of its gate, and go behind it.
func TestPauseOfThoseWhoShare(t *testing.T) {
	type call = func(context.Context) (*lock.Held, error)
	for name, tt := range map[string]struct {
		line  string // that is paused
		calls func(b backend.Backend) (hold, share, try call)
	}{
		"readers": {"jobs", func(b backend.Backend) (hold, share, try call) {
			m := lock.NewRWMutex(b, "jobs", nil)
			return m.Lock, m.RLock, m.TryRLock
		}},
		"slots": {"jobs-slots", func(b backend.Backend) (hold, share, try call) {
			s := lock.NewSemaphore(b, "jobs", 1, nil)
			return s.Acquire, s.Acquire, s.TryAcquire
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				hold, _, _ := tt.calls(bubble.Client(t, c, "holder"))
				_, share, _ := tt.calls(bubble.Client(t, c, "waits"))
				_, _, try := tt.calls(bubble.Client(t, c, "tries"))
				holder, waits := ask(t, hold), ask(t, share)
				operator := operate.New(bubble.Client(t, c, "operator"), tt.line, "ops")
				paused := bubble.Go(func() (elect.Candidate, error) { return operator.Pause(t.Context(), "the disk is moved") })
				bubble.Want(t, holder.Value.Check(), elect.ErrAsked)
				release(t, c, holder)
				time.Sleep(time.Minute)
				if waits.Returned(t) || !paused.Returned(t) {
					t.Fatalf("who waits has it: %v; the pause holds: %v", waits.Returned(t), paused.Returned(t))
				}
				_, err := try(t.Context())
				bubble.Want(t, err, lock.ErrLocked)
				bubble.Must[elect.Candidate](t)(operator.Resume(t.Context(), nil))
				if !waits.Returned(t) || waits.Value.Check() != nil {
					t.Fatal("the pause is over, and who waits does not have it")
				}
				release(t, c, waits)
			})
		})
	}
}

// A pause whose gate was taken away by hand, so that the header still names it, is none for those who share.
func TestGateThatHasGone(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		writer := ask(t, lock.NewRWMutex(bubble.Client(t, c, "w"), "jobs", nil).Lock)
		reader := ask(t, lock.NewRWMutex(bubble.Client(t, c, "r"), "jobs", nil).RLock)
		operator := operate.New(bubble.Client(t, c, "operator"), "jobs", "ops")
		bubble.Go(func() (elect.Candidate, error) { return operator.Pause(t.Context(), "the disk is moved") })
		c.Remove("jobs", c.Members("jobs")[2].Key)
		release(t, c, writer)
		if !reader.Returned(t) || reader.Value.Check() != nil {
			t.Fatal("the reader does not hold the lock")
		}
		release(t, c, reader)
	})
}

// A writer gives way to nobody who would share the lock, whatever its priority: readers that ask later would pass it again and again.
func TestWriterOfLowPriority(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		first := ask(t, lock.NewMutex(bubble.Client(t, c, "w1"), "jobs", nil).Lock)
		low := ask(t, lock.NewMutex(bubble.Client(t, c, "w2"), "jobs", &elect.Options{Priority: -1}).Lock)
		reader := ask(t, lock.NewRWMutex(bubble.Client(t, c, "r"), "jobs", nil).RLock)
		release(t, c, first)
		if !low.Returned(t) || reader.Returned(t) {
			t.Fatal("the writer has given way to a reader behind it")
		}
		release(t, c, low)
		release(t, c, reader)
	})
}

// An operator asks the first of those who share a lock, and no other, also if the fence was raised since they have it.
func TestAskedOfOneWhoShares(t *testing.T) {
	for _, fence := range []uint64{0, 100} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			var readers []*asked
			for _, name := range []string{"r1", "r2", "r3"} {
				readers = append(readers, ask(t, lock.NewRWMutex(bubble.Client(t, c, name), "jobs", nil).RLock))
			}
			operator := operate.New(bubble.Client(t, c, "operator"), "jobs", "ops")
			if fence > 0 {
				bubble.Want(t, operator.RaiseFence(t.Context(), fence), nil)
			}
			for i, r := range readers {
				bubble.Must[elect.Leader](t)(operator.AskToResign(t.Context(), nil))
				time.Sleep(time.Second)
				for j, r := range readers {
					if err := r.Value.Check(); errors.Is(err, elect.ErrAsked) != (j <= i) || j > i && err != nil {
						t.Errorf("with fence %d, after request %d: reader %d: %v", fence, i, j, err)
					}
				}
				release(t, c, r)
			}
		})
	}
}

// A handle is one candidate, with one ID, in whatever line it stands.
func TestOneHandleHasOneID(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		one, two := lock.NewRWMutex(bubble.Client(t, c, "a"), "jobs", nil), lock.NewSemaphore(bubble.Client(t, c, "b"), "jobs", 1, nil)
		writer, reader := ask(t, one.Lock), ask(t, one.RLock)
		holder, waiter := ask(t, two.Acquire), ask(t, two.Acquire)
		for what, lines := range map[string][]string{"a shared lock": {"jobs"}, "a semaphore": {"jobs-slots", "jobs-waiting"}} {
			ids := make(map[string]bool)
			for _, line := range lines {
				for _, m := range c.Members(line) {
					ids[m.Value] = true
				}
			}
			if len(ids) != 1 {
				t.Errorf("%s stands in line as %v", what, ids)
			}
		}
		release(t, c, writer)
		release(t, c, reader)
		release(t, c, holder)
		release(t, c, waiter)
	})
}
