package elect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/memory"
)

func lead(t *testing.T, b backend.Backend, o *elect.Options) *elect.Term {
	t.Helper()
	term, err := elect.New(b, "reports", o).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return term
}

// The deadline of a term whose session has ended has passed: by a margin before that of the session if nobody renewed it, and at once
// if it was ended.
func TestDeadlineOfATermThatIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		term := lead(t, b, nil)
		b.Cut()
		was := term.Deadline()
		time.Sleep(2 * ttl)
		if d := term.Deadline(); !d.Equal(was) || was.Sub(term.SessionDeadline()) > -ttl/10 {
			t.Errorf("the deadline was %v and is %v; that of the session is %v", was, d, term.SessionDeadline())
		}
		b.Heal()
		term.Resign(t.Context())

		term = lead(t, b, nil)
		term.Check()
		b.Expire()
		if d := term.Deadline(); d.After(time.Now()) {
			t.Errorf("the session has ended, and the deadline of its term is %v ahead", time.Until(d))
		}
		term.Resign(t.Context())
	})
}

// Whoever asks is told that the session has ended, also by a driver that has not told so by itself; and a term that is over leaves
// nothing with its session.
func TestCheckAsksTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		var over atomic.Bool
		var listening atomic.Int32
		b := as(t, c, "a", other{
			err: func() error {
				if over.Load() {
					return backend.ErrSessionEnded
				}
				return nil
			},
			onEnd: func(begun bool) {
				if begun {
					listening.Add(1)
				} else {
					listening.Add(-1)
				}
			},
		})
		term := lead(t, b, nil)
		over.Store(true)
		if err := term.Check(); !errors.Is(err, backend.ErrSessionEnded) || term.Context().Err() == nil {
			t.Errorf("Check: %v", err)
		}
		over.Store(false)
		term.Resign(t.Context())
		if n := listening.Load(); n != 0 {
			t.Errorf("%d listen to the session after the term", n)
		}
	})
}

// What goes wrong with the watch over a leader ends its term only if it proves that the member or the session has gone. The watch
// goes on, after pauses that begin anew when it has worked.
func TestWatchOverALeader(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		ends error
	}{
		"unavailable":   {backend.ErrUnavailable, nil},
		"denied":        {backend.ErrDenied, nil},
		"has no order":  {backend.ErrLine, nil},
		"session ended": {backend.ErrSessionEnded, backend.ErrSessionEnded},
		"removed":       {backend.ErrNotMember, elect.ErrRemoved},
		"moved":         {&backend.SealedError{To: "etcd://elsewhere"}, backend.ErrSealed},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				var calls []time.Time
				b := as(t, c, "a", other{watch: func(p *backend.Place) (bool, error) {
					if !p.First || len(calls) > 12 {
						return false, nil
					}
					calls = append(calls, time.Now())
					if len(calls) == 10 {
						return true, nil
					}
					return true, tt.err
				}})
				term := lead(t, b, nil)
				time.Sleep(time.Minute)
				if tt.ends != nil {
					if err := term.Check(); !errors.Is(err, tt.ends) || len(calls) != 1 {
						t.Errorf("after %d calls: %v, want %v", len(calls), err, tt.ends)
					}
					term.Resign(t.Context())
					return
				}
				if err := term.Check(); err != nil {
					t.Fatalf("the term has ended: %v", err)
				}
				if d := calls[9].Sub(calls[8]); d < time.Second {
					t.Errorf("after many failures the pause is %v", d)
				}
				if d := calls[11].Sub(calls[10]); d > 50*time.Millisecond {
					t.Errorf("after a success the pause is %v", d)
				}
				c.Remove("reports", term.Member().Key)
				synctest.Wait()
				if !errors.Is(term.Check(), elect.ErrRemoved) {
					t.Errorf("the member was removed, and the term says %v", term.Check())
				}
				term.Resign(t.Context())
			})
		})
	}
}

// A request to resign that is there when a term begins is heard; a pause is not taken for an older request.
func TestAskedBeforeTheTerm(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		write := func(h header.Header) {
			t.Helper()
			if _, err := s.Put(t.Context(), "reports", h.Encode(), nil); err != nil {
				t.Fatal(err)
			}
		}
		first := lead(t, b, nil)
		next := make(chan *elect.Term, 1)
		go func() { next <- lead(t, client(t, c, "b"), nil) }()
		synctest.Wait()
		write(header.Header{Resign: c.Members("reports")[1].Position, Asked: value.Of{ID: "op-1", Text: "too old"}.String()})
		synctest.Wait()
		first.Resign(t.Context())
		term := <-next
		time.Sleep(time.Second)
		if err := term.Check(); !errors.Is(err, elect.ErrAsked) || !strings.Contains(err.Error(), "op-1: too old") {
			t.Errorf("the term that was asked to end before it began: %v", err)
		}
		term.Resign(t.Context())

		term = lead(t, b, nil)
		go operate.New(client(t, c, "operator"), "reports", "op-2").Pause(t.Context(), "for the night")
		<-term.Context().Done()
		if err := term.Check(); !errors.Is(err, elect.ErrAsked) || strings.Contains(err.Error(), "op-1") {
			t.Errorf("the term that was paused: %v", err)
		}
		term.Resign(t.Context())
		synctest.Wait()
	})
}

// The first warning that the work goes on comes after the margin, which is there for the work to end, and not before a second is over.
func TestWarningsAfterTheMargin(t *testing.T) {
	for margin, want := range map[time.Duration]time.Duration{2500 * time.Millisecond: 2500 * time.Millisecond, time.Millisecond: time.Second} {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			var l told
			term := lead(t, client(t, c, "a"), &elect.Options{Margin: margin, Trace: l.trace})
			c.Remove("reports", term.Member().Key)
			<-term.Context().Done()
			time.Sleep(want + time.Millisecond)
			if ev := l.all(trace.Working); len(ev) != 1 || ev[0].Worked != want {
				t.Errorf("with a margin of %v it warns %v, want once after %v", margin, ev, want)
			}
			term.Resign(t.Context())
		})
	}
}

// Where the leader is, is noted once for each change, and costs nothing where candidates have no site.
func TestSiteIsNotedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		for i, site := range []string{"", "north", "north", "south"} {
			b := client(t, c, fmt.Sprint("c", i))
			term := lead(t, b, &elect.Options{Site: site})
			time.Sleep(time.Second)
			puts := c.Requests().Of(b.Name(), memory.OpPut)
			// A candidate with a site also notes that candidates have ranks, the first time.
			if want := map[int]int{0: 0, 1: 2, 2: 0, 3: 1}[i]; puts != want {
				t.Errorf("candidate %d, in %q, has written %d times, want %d", i, site, puts, want)
			}
			term.Resign(t.Context())
		}
	})
}

// No name of the election itself can be written, with what stands below it.
func TestNamesOfTheElectionItself(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		term := lead(t, client(t, c, "a"), nil)
		defer term.Resign(t.Context())
		for name, ok := range map[string]bool{
			"reports": false, "reports.fence": false, "reports.history": false, "reports.unready": false,
			"reports/x": false, "reports.unready/5": false, "reports-x": true, "reports.unready2": true, "other": true,
		} {
			_, err := term.Put(t.Context(), name, []byte("x"), backend.Any)
			if (err == nil) != ok || !ok && !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("Put of %s: %v", name, err)
			}
			err = term.Delete(t.Context(), name, backend.Any)
			if (err == nil) != ok || !ok && !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("Delete of %s: %v", name, err)
			}
		}
	})
}

// Run pauses after a term that did not last for a session time, if the candidate stepped down or was not ready, and then says why
// if it ends in the pause. It does not pause after a term that was lost otherwise.
func TestPausesOfRun(t *testing.T) {
	noDisk := fmt.Errorf("no disk: %w", elect.ErrStepDown)
	for _, tt := range []struct {
		name   string
		lasts  time.Duration
		lose   bool // it loses its term
		paused bool
	}{
		{"steps down at once", 0, false, true},
		{"steps down after half a session time", ttl / 2, false, true},
		{"steps down after a session time", ttl + time.Second, false, false},
		{"loses its term", 0, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				var began, ended []time.Time
				last := errors.New("the last")
				err := elect.New(client(t, c, "a"), "reports", nil).Run(t.Context(), func(ctx context.Context, term *elect.Term) error {
					if began = append(began, time.Now()); len(began) == 2 {
						return last
					}
					time.Sleep(tt.lasts)
					if tt.lose {
						c.Remove("reports", term.Member().Key)
						<-ctx.Done()
					}
					ended = append(ended, time.Now())
					return noDisk
				})
				if err != last {
					t.Fatal(err)
				}
				if d := began[1].Sub(ended[0]); (d >= time.Second/2) != tt.paused || d > 1100*time.Millisecond {
					t.Errorf("it leads again after %v, want a pause: %t", d, tt.paused)
				}
			})
		})
	}
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancelCause(t.Context())
		end := make(chan error, 1)
		go func() {
			end <- elect.New(client(t, c, "a"), "reports", nil).Run(ctx, func(context.Context, *elect.Term) error { return noDisk })
		}()
		synctest.Wait()
		cancel(errors.New("shutdown"))
		if err := <-end; !strings.Contains(err.Error(), "no disk") || !strings.Contains(err.Error(), "shutdown") {
			t.Errorf("Run ended in a pause with %v", err)
		}
	})
	// A leader that is not ready, and gives way to one that may be.
	inField(t, func(t *testing.T, f *field) {
		able := unreadySwitch()
		able.set(nil)
		f.join(elect.Options{ID: "a", Ready: able.ready})
		f.leader("a")
		leave := f.foreign("b")
		able.set(errNoDisk)
		var left time.Time
		for began := time.Now(); left.IsZero() && time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
			if len(f.told["a"].all(trace.Left)) > 0 {
				left = time.Now()
			}
		}
		for len(f.told["a"].all(trace.Joined)) < 2 {
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(left); left.IsZero() || d < time.Second/2 {
			t.Errorf("it joins again after %v", d)
		}
		leave()
	})
}

// What the work says after its term was lost is what Run returns, if its context ends while it leaves the line.
func TestRunEndsWhileItLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		unsaved, shutdown := errors.New("could not save"), errors.New("shutdown")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := elect.New(client(t, c, "a"), "reports", &elect.Options{Trace: func(ev trace.Event) {
			if ev.Kind == trace.Left {
				cancel(shutdown)
			}
		}}).Run(ctx, func(ctx context.Context, term *elect.Term) error {
			c.Remove("reports", term.Member().Key)
			<-ctx.Done()
			return unsaved
		})
		if !errors.Is(err, unsaved) || !strings.Contains(err.Error(), "shutdown") {
			t.Errorf("Run returned %v", err)
		}
		err = elect.New(client(t, c, "b"), "reports//", nil).Run(t.Context(), func(context.Context, *elect.Term) error { return nil })
		if !errors.Is(err, backend.ErrInvalid) || strings.Contains(err.Error(), "nil") {
			t.Errorf("Run of a name that is not allowed: %v", err)
		}
	})
}

// A candidate says whether it is ready in a record, as often as that changes, and tries again when that could not be written; the bell
// rings when it is ready again. It gives up where that is denied.
func TestReadinessIsRecorded(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fails error
		gives bool // it gives up
	}{{"at once", nil, false}, {"again", backend.ErrUnavailable, false}, {"denied", backend.ErrDenied, true}} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				_, leave := raw(t, c, "first")
				var mu sync.Mutex
				tries := map[string]int{}
				tried := func(key string) int {
					mu.Lock()
					defer mu.Unlock()
					return tries[key]
				}
				fail := func(op string) func(string) error {
					return func(name string) error {
						if !strings.HasPrefix(name, "reports.unready") {
							return nil
						}
						key := op + " " + strings.TrimRight(name, "0123456789")
						mu.Lock()
						defer mu.Unlock()
						if tries[key]++; tries[key] <= 2 {
							return tt.fails
						}
						return nil
					}
				}
				able := unreadySwitch()
				able.set(errors.New(strings.Repeat("x", 5000)))
				ctx, cancel := context.WithCancel(t.Context())
				r := run(ctx, elect.New(as(t, c, "a", other{put: fail("put"), remove: fail("delete")}), "reports", &elect.Options{Ready: able.ready}))
				time.Sleep(5 * time.Second)
				record := func() backend.Record { return c.Record(unready.Record("reports", c.Members("reports")[1].Position)) }
				bell := func() backend.Version { return c.Record("reports.unready").Version }
				if tt.gives {
					if got := record(); got.Version != backend.Absent || tried("put reports.unready/") != 1 {
						t.Errorf("%v, %d tries", got, tried("put reports.unready/"))
					}
				} else {
					if got := record(); len(got.Value) != unready.MaxReason {
						t.Errorf("the record has %d bytes, want %d", len(got.Value), unready.MaxReason)
					}
					for range 2 {
						rang := bell()
						able.set(nil)
						time.Sleep(5 * time.Second)
						if got := record(); got.Version != backend.Absent || bell() == rang {
							t.Errorf("it is ready, and the record is %v, and the bell at %v after %v", got, bell(), rang)
						}
						able.set(errNoDisk)
						time.Sleep(5 * time.Second)
						if got := record(); string(got.Value) != errNoDisk.Error() {
							t.Errorf("the record says %q", got.Value)
						}
					}
				}
				cancel()
				<-r.end
				leave()
			})
		})
	}
}
