package lock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/metrics"
	"github.com/succession-dev/succession/metrics/health"
	"github.com/succession-dev/succession/recipes/lock"
)

// An apart context ends as the one in it does, and is of another type than those of package context, which
// need a goroutine to see the end of such a parent.
type apart struct {
	context.Context
	done chan struct{}
}

func (a apart) Done() <-chan struct{} { return a.done }

// All leaves nothing behind, also if the caller's context goes on.
func TestAllLeavesNothing(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx := apart{t.Context(), make(chan struct{})}
		b := bubble.Client(t, c, "a")
		all := bubble.Must[*lock.HeldAll](t)(lock.All(ctx, lock.NewMutex(b, "x", nil), lock.NewMutex(b, "y", nil)))
		if err := all.Unlock(ctx); err != nil {
			t.Error(err)
		}
		// The bubble fails if a goroutine is left.
	})
}

// A lock that is lost in the moment in which All gets the last one is not handed out.
func TestAllLosesOneAsItGetsTheLast(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		last := lock.NewMutex(b, "y", &elect.Options{Trace: func(ev trace.Event) {
			if ev.Kind == trace.Elected {
				c.Remove("x", c.Members("x")[0].Key)
				time.Sleep(time.Second) // until that is known
			}
		}})
		_, err := lock.All(t.Context(), lock.NewMutex(b, "x", nil), last)
		bubble.Want(t, err, elect.ErrRemoved)
		if n := standing(c, "x") + standing(c, "y"); n != 0 {
			t.Errorf("%d stand in line", n)
		}
	})
}

// Whoever asks is told at once, and not when a goroutine has seen the end of one of the locks.
func TestAllIsAskedAtOnce(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := bubble.Client(t, c, "a"), bubble.Client(t, c, "b")
		var at atomic.Pointer[time.Time]
		overdue := lock.NewMutex(view.Of(b, func(s backend.Session) backend.Session { return until{s, &at} }), "y", nil)
		all := bubble.Must[*lock.HeldAll](t)(lock.All(t.Context(), lock.NewMutex(a, "x", nil), overdue))
		now := time.Now()
		at.Store(&now) // as the process sees it that was paused for so long
		bubble.Want(t, all.Check(), elect.ErrDeadline)
		if all.Context().Err() == nil {
			t.Error("Check has failed, and the context goes on")
		}
		at.Store(nil)
		all.Unlock(t.Context())
	})
}

// An until is a session whose deadline is what the test says; it has none if that is nil.
type until struct {
	backend.Session
	at *atomic.Pointer[time.Time]
}

func (u until) Deadline() time.Time {
	if at := u.at.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// The deadline of several locks is the first one, wherever it stands; some have none.
func TestDeadlineOfAll(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		short := bubble.Client(t, c, "short")
		long := bubble.Client(t, memory.New(&memory.Options{TTL: time.Hour}), "long")
		none := view.Of(bubble.Client(t, c, "none"), func(s backend.Session) backend.Session { return until{s, new(atomic.Pointer[time.Time])} })
		for _, order := range [][]backend.Backend{{short, long, none}, {none, long, short}, {long, none, short}, {none}} {
			var locks []*lock.Mutex
			for i, b := range order {
				locks = append(locks, lock.NewMutex(b, string(rune('x'+i)), nil))
			}
			all := bubble.Must[*lock.HeldAll](t)(lock.All(t.Context(), locks...))
			want := time.Time{}
			for i, b := range order {
				if b == backend.Backend(short) {
					want = all.Locks()[i].Deadline()
				}
			}
			if got := all.Deadline(); !got.Equal(want) {
				t.Errorf("%d locks end at %v, want %v", len(order), got, want)
			}
			if err := all.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Who cannot unlock is told so, each time it asks.
func TestUnlockThatFails(t *testing.T) {
	for name, take := range map[string]func(context.Context, backend.Backend) (interface{ Unlock(context.Context) error }, error){
		"one": func(ctx context.Context, b backend.Backend) (interface{ Unlock(context.Context) error }, error) {
			return lock.NewMutex(b, "jobs", nil).Lock(ctx)
		},
		"all": func(ctx context.Context, b backend.Backend) (interface{ Unlock(context.Context) error }, error) {
			return lock.All(ctx, lock.NewMutex(b, "x", nil), lock.NewMutex(b, "y", nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				b := bubble.Client(t, c, "a")
				h, err := take(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				b.Cut()
				for range 2 {
					bubble.Want(t, h.Unlock(t.Context()), context.DeadlineExceeded)
				}
				b.Heal()
			})
		})
	}
}

// While the line of the holders is paused nobody gets a slot, and then all do.
func TestSemaphoreIsPaused(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		operator := operate.New(bubble.Client(t, c, "operator"), "jobs-slots", "operator")
		if _, err := operator.Pause(t.Context(), "for the night"); err != nil {
			t.Fatal(err)
		}
		one := ask(t, lock.NewSemaphore(bubble.Client(t, c, "a"), "jobs", 2, nil).Acquire)
		two := ask(t, lock.NewSemaphore(bubble.Client(t, c, "b"), "jobs", 2, nil).Acquire)
		time.Sleep(time.Hour)
		if one.Returned(t) || two.Returned(t) {
			t.Fatal("a slot of a semaphore that is paused was given away")
		}
		if _, err := operator.Resume(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		resumed := time.Now()
		<-one.Done
		<-two.Done
		if d := time.Since(resumed); !one.Returned(t) || !two.Returned(t) || d > time.Second {
			t.Errorf("the slots were given away after %v", d)
		}
		release(t, c, one)
		release(t, c, two)
	})
}

// A changed session answers in another way than the coordinator.
type changed struct {
	backend.Session
	line func(ctx context.Context, line string, read func(context.Context, string) (backend.Line, error)) (backend.Line, error)
	gone func(ctx context.Context, m backend.Member) error
}

func (s *changed) Line(ctx context.Context, line string) (backend.Line, error) {
	if s.line == nil {
		return s.Session.Line(ctx, line)
	}
	return s.line(ctx, line, s.Session.Line)
}

func (s *changed) Gone(ctx context.Context, m backend.Member) error {
	if s.gone == nil {
		return s.Session.Gone(ctx, m)
	}
	return s.gone(ctx, m)
}

// What the coordinator refuses to who waits for a slot is an error, and no reason to wait on.
func TestSemaphoreIsDenied(t *testing.T) {
	for name, how := range map[string]changed{
		"the line": {line: func(context.Context, string, func(context.Context, string) (backend.Line, error)) (backend.Line, error) {
			return backend.Line{}, backend.ErrDenied
		}},
		"the exits": {gone: func(context.Context, backend.Member) error { return backend.ErrDenied }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
				holder := ask(t, lock.NewSemaphore(bubble.Client(t, c, "a"), "jobs", 1, nil).Acquire)
				b := view.Of(bubble.Client(t, c, "b"), func(s backend.Session) backend.Session {
					how := how
					how.Session = s
					return &how
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				_, err := lock.NewSemaphore(b, "jobs", 1, nil).Acquire(ctx)
				bubble.Want(t, err, backend.ErrDenied)
				release(t, c, holder)
			})
		})
	}
}

// Nobody holds a slot by a member that has gone from the line as it was counted, also if another has its key by then.
func TestSlotOfOneThatHasGone(t *testing.T) {
	for _, again := range []bool{false, true} {
		bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
			other, err := bubble.Client(t, c, "other").Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			once := false
			b := view.Of(bubble.Client(t, c, "a"), func(s backend.Session) backend.Session {
				return &changed{Session: s, line: func(ctx context.Context, line string, read func(context.Context, string) (backend.Line, error)) (backend.Line, error) {
					if line == "jobs-slots" && !once {
						once = true
						c.Drop(line)
						if again {
							if _, err := other.JoinShared(ctx, line, "other", ""); err != nil {
								t.Error(err)
							}
						}
					}
					return read(ctx, line)
				}}
			})
			var terms []uint64
			h := bubble.Must[*lock.Held](t)(lock.NewSemaphore(b, "jobs", 2, &elect.Options{Trace: func(ev trace.Event) {
				if ev.Kind == trace.Elected {
					terms = append(terms, ev.Token)
				}
			}}).Acquire(t.Context()))
			if !once || !slices.Contains(c.Members("jobs-slots"), h.Term().Member()) || len(terms) != 1 {
				t.Errorf("%v holds a slot (terms %v), and in line stand %v", h.Term().Member(), terms, c.Members("jobs-slots"))
			}
			h.Unlock(t.Context())
		})
	}
}

// The steps of a semaphore are told under its name: who waits and for how long, and one term for each slot.
func TestTraceOfASemaphore(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		var kinds []trace.Kind
		count := func(k trace.Kind) (n int) {
			for _, other := range kinds {
				if other == k {
					n++
				}
			}
			return n
		}
		o := &elect.Options{Trace: func(ev trace.Event) {
			if ev.Election != "jobs" {
				t.Errorf("%v of %s, want jobs", ev.Kind, ev.Election)
			}
			kinds = append(kinds, ev.Kind)
		}}
		first := ask(t, lock.NewSemaphore(bubble.Client(t, c, "a"), "jobs", 1, nil).Acquire)
		next := ask(t, lock.NewSemaphore(bubble.Client(t, c, "b"), "jobs", 1, nil).Acquire)
		third := ask(t, lock.NewSemaphore(bubble.Client(t, c, "c"), "jobs", 1, o).Acquire)
		if count(trace.Started) != 1 || count(trace.Joined) != 1 || count(trace.Waiting) != 1 {
			t.Errorf("who waits for a turn tells %v, want that it stands in line and waits", kinds)
		}
		release(t, c, first)
		release(t, c, next)
		if !third.Returned(t) || count(trace.Elected) != 1 || count(trace.Ended) != 0 || count(trace.Left) != 1 || count(trace.Finished) != 1 {
			t.Errorf("who has got a slot has told %v", kinds)
		}
		release(t, c, third)
		if count(trace.Ended) != 1 || count(trace.Left) != count(trace.Joined) || count(trace.Finished) != count(trace.Started) {
			t.Errorf("who had a slot has told %v", kinds)
		}

		// A turn that cannot be asked for is told as well.
		b := bubble.Client(t, c, "d")
		b.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		before := count(trace.Retrying)
		if _, err := lock.NewSemaphore(b, "jobs", 1, o).Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if count(trace.Retrying) == before {
			t.Errorf("who cannot reach the coordinator has told %v, and not that it tries again", kinds)
		}
		b.Heal()
	})
}

// Who gives up while the coordinator cannot be reached leaves all lines within one ResignTimeout.
func TestGivingUpTakesOneResignTimeout(t *testing.T) {
	for what, call := range map[string]func(context.Context, backend.Backend) error{
		"a lock": func(ctx context.Context, b backend.Backend) error {
			_, err := lock.NewMutex(b, "z", nil).Lock(ctx)
			return err
		},
		"a slot": func(ctx context.Context, b backend.Backend) error {
			_, err := lock.NewSemaphore(b, "z", 1, nil).Acquire(ctx)
			return err
		},
		"several locks": func(ctx context.Context, b backend.Backend) error {
			var locks []*lock.Mutex
			for _, name := range []string{"a", "b", "c", "z"} {
				locks = append(locks, lock.NewMutex(b, name, nil))
			}
			_, err := lock.All(ctx, locks...)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T, _ *memory.Coordinator) {
				c := memory.New(&memory.Options{TTL: time.Hour}) // longer than the test
				other := bubble.Client(t, c, "other")
				ask(t, lock.NewMutex(other, "z", nil).Lock)
				ask(t, lock.NewSemaphore(other, "z", 1, nil).Acquire)
				b := bubble.Client(t, c, "a")
				ctx, cancel := context.WithCancelCause(t.Context())
				waits := bubble.Go(func() (struct{}, error) { return struct{}{}, call(ctx, b) })
				b.Cut()
				enough, began := errors.New("enough"), time.Now()
				cancel(enough)
				<-waits.Done
				bubble.Want(t, waits.Err, enough)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Who waits for a turn stands in line, for probes and metrics too, and no more once it is cut off.
func TestProbesOfASemaphore(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ready, recorder := health.NewReady(), metrics.New(nil)
		b := bubble.Client(t, c, "third")
		first := ask(t, lock.NewSemaphore(bubble.Client(t, c, "first"), "jobs", 1, nil).Acquire)
		next := ask(t, lock.NewSemaphore(bubble.Client(t, c, "next"), "jobs", 1, nil).Acquire)
		third := ask(t, lock.NewSemaphore(b, "jobs", 1, &elect.Options{Trace: trace.Tee(ready.Trace, recorder.Trace)}).Acquire)
		expect := func(what string, status int, values map[string]float64) {
			t.Helper()
			w := httptest.NewRecorder()
			ready.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != status {
				t.Errorf("%s: the probe says %d, want %d", what, w.Code, status)
			}
			for _, f := range recorder.Gather() {
				want, ok := values[f.Name]
				if ok && (len(f.Series) != 1 || f.Series[0].Value != want) {
					t.Errorf("%s: %s is %v, want %v", what, f.Name, f.Series, want)
				}
			}
		}
		values := func(inLine, leader float64) map[string]float64 {
			return map[string]float64{"succession_in_line": inLine, "succession_leader": leader}
		}
		expect("it waits for a turn", http.StatusOK, values(1, 0))
		b.Cut()
		time.Sleep(2 * bubble.TTL)
		expect("it is cut off", http.StatusServiceUnavailable, values(0, 0))
		b.Heal()
		time.Sleep(time.Minute)
		expect("it waits again", http.StatusOK, values(1, 0))
		release(t, c, first)
		expect("it waits for a slot", http.StatusOK, values(2, 0)) // in two lines
		release(t, c, next)
		expect("it has a slot", http.StatusOK, values(1, 1))
		release(t, c, third)
	})
}

// What is wrong with the options of an RWMutex is said by each of its calls.
func TestOptionsOfAnRWMutex(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		m := lock.NewRWMutex(bubble.Client(t, c, "a"), "jobs", &elect.Options{Priority: 1})
		for _, call := range []func(context.Context) (*lock.Held, error){m.Lock, m.TryLock, m.RLock, m.TryRLock} {
			_, err := call(t.Context())
			bubble.Want(t, err, backend.ErrInvalid)
		}
	})
}

// Those who hold a lock together are not compared with those behind them, whatever these say of themselves.
func TestReadersAreNotCompared(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		first := ask(t, lock.NewMutex(bubble.Client(t, c, "w1"), "jobs", nil).Lock)
		reader := ask(t, lock.NewRWMutex(bubble.Client(t, c, "r"), "jobs", nil).RLock)
		better := ask(t, lock.NewMutex(bubble.Client(t, c, "w2"), "jobs", &elect.Options{Priority: 9}).Lock)
		release(t, c, first)
		if !reader.Returned(t) || better.Returned(t) {
			t.Error("a reader has given way to a writer behind it")
		}
		reader.Value.Unlock(t.Context())
		<-better.Done
		better.Value.Unlock(t.Context())
	})
}

// Who waits for a slot, and is removed from the line, waits on at its end.
func TestWaiterForASlotIsRemoved(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		holder := ask(t, lock.NewSemaphore(bubble.Client(t, c, "a"), "jobs", 1, nil).Acquire)
		waiter := ask(t, lock.NewSemaphore(bubble.Client(t, c, "b"), "jobs", 1, nil).Acquire)
		was := c.Members("jobs-slots")[1]
		c.Remove("jobs-slots", was.Key)
		time.Sleep(3 * bubble.TTL)
		if now := c.Members("jobs-slots"); waiter.Returned(t) || len(now) != 2 || now[1] == was {
			t.Errorf("in line stand %v", now)
		}
		release(t, c, holder)
		if !waiter.Returned(t) {
			t.Fatal("the slot is free")
		}
		release(t, c, waiter)
	})
}

// Who waits for a slot and loses its session waits for its turn again: so one at most stands behind the holders.
func TestOneWaitsForASlot(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		holder := bubble.Must[*lock.Held](t)(lock.NewSemaphore(bubble.Client(t, c, "holder"), "jobs", 1, nil).Acquire(ctx))
		var waiting sync.WaitGroup
		var clients []*memory.Backend
		for i := range 4 {
			b := bubble.Client(t, c, fmt.Sprint(i))
			clients = append(clients, b)
			waiting.Go(func() {
				if _, err := lock.NewSemaphore(b, "jobs", 1, nil).Acquire(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, b := range clients {
			b.Expire()
			time.Sleep(2 * bubble.TTL)
			if n := len(c.Members("jobs-slots")); n != 2 {
				t.Errorf("%d have a slot or wait for one; want the holder and one more", n)
			}
		}
		cancel()
		waiting.Wait()
		holder.Unlock(t.Context())
	})
}
