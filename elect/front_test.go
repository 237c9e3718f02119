package elect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
)

// An other session does some calls in another way.
type other struct {
	backend.Session
	get       func(name string) error
	put       func(name string) error
	list      func(dir string) error
	line      func(line string) error
	watchLine func(line string) error
	head      func(l *backend.Line) error
	gone      func() error
	joined    func(backend.Joined) backend.Joined
	place     func(p *backend.Place) // changes what is shown of a place
	real      backend.Place
	watch     func(p *backend.Place) (answered bool, err error)
	remove    func(name string) error // for Delete
	err       func() error
	refresh   func() error
	onEnd     func(begun bool) // OnEnd is called, or what it has returned
	untimed   bool             // it has no session time, and no deadline
}

func (s *other) Delete(ctx context.Context, name string, cond *backend.If) error {
	if s.remove != nil {
		if err := s.remove(name); err != nil {
			return err
		}
	}
	return s.Session.Delete(ctx, name, cond)
}

func (s *other) Refresh(ctx context.Context) error {
	if s.refresh != nil {
		if err := s.refresh(); err != nil {
			return err
		}
	}
	return s.Session.Refresh(ctx)
}

func (s *other) Err() error {
	if s.err != nil {
		if err := s.err(); err != nil {
			return err
		}
	}
	return s.Session.Err()
}

func (s *other) OnEnd(f func(error)) func() {
	stop := s.Session.OnEnd(f)
	if s.onEnd == nil {
		return stop
	}
	s.onEnd(true)
	return func() { stop(); s.onEnd(false) }
}

func (s *other) Deadline() time.Time {
	if s.untimed {
		return time.Time{}
	}
	return s.Session.Deadline()
}

func (s *other) Get(ctx context.Context, name string) (backend.Record, error) {
	if s.get != nil {
		if err := s.get(name); err != nil {
			return backend.Record{}, err
		}
	}
	return s.Session.Get(ctx, name)
}

func (s *other) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if s.put != nil {
		if err := s.put(name); err != nil {
			return 0, err
		}
	}
	return s.Session.Put(ctx, name, value, cond)
}

func (s *other) List(ctx context.Context, dir string) ([]string, error) {
	if s.list != nil {
		if err := s.list(dir); err != nil {
			return nil, err
		}
	}
	return s.Session.List(ctx, dir)
}

func (s *other) Line(ctx context.Context, line string) (backend.Line, error) {
	if s.line != nil {
		if err := s.line(line); err != nil {
			return backend.Line{}, err
		}
	}
	return s.Session.Line(ctx, line)
}

func (s *other) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	if s.watchLine != nil {
		if err := s.watchLine(line); err != nil {
			return backend.Line{}, err
		}
	}
	return s.Session.WatchLine(ctx, line, after)
}

func (s *other) Head(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Head(ctx, line)
	if s.head != nil && err == nil {
		err = s.head(&l)
	}
	return l, err
}

func (s *other) Gone(ctx context.Context, m backend.Member) error {
	if s.gone != nil {
		if err := s.gone(); err != nil {
			return err
		}
	}
	return s.Session.Gone(ctx, m)
}

func (s *other) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Session.Join(ctx, line, value, record)
	if s.place != nil && j.Place != nil {
		s.real = *j.Place
		p := s.real
		s.place(&p)
		j.Place = &p
	}
	if s.joined != nil && err == nil {
		j = s.joined(j)
	}
	return j, err
}

func (s *other) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if s.place != nil {
		s.real = p
		s.place(&p)
	}
	return p, err
}

func (s *other) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if s.watch != nil {
		if answered, err := s.watch(p); answered {
			return err
		}
	}
	if s.place == nil {
		return s.Session.WatchPlace(ctx, m, p)
	}
	err := s.Session.WatchPlace(ctx, m, &s.real)
	*p = s.real
	s.place(p)
	return err
}

func (s *other) TTL() time.Duration {
	if s.untimed {
		return 0
	}
	return s.Session.TTL()
}

func (s *other) MaxMargin() time.Duration {
	if s.untimed {
		return 0
	}
	return s.Session.MaxMargin()
}

// as returns a client whose sessions do some calls in another way.
func as(t *testing.T, c *memory.Coordinator, name string, how other) backend.Backend {
	return view.Of(client(t, c, name), func(s backend.Session) backend.Session {
		how := how
		how.Session = s
		return &how
	})
}

// raw adds a member with a value, and returns how it leaves.
func raw(t *testing.T, c *memory.Coordinator, value string) (m backend.Member, leave func()) {
	t.Helper()
	s, err := client(t, c, "raw").Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Join(t.Context(), "reports", value, "")
	if err != nil {
		t.Fatal(err)
	}
	return j.Member, func() {
		t.Helper()
		if err := s.Leave(t.Context(), j.Member); err != nil {
			t.Error(err)
		}
	}
}

func ranked(id string, priority int) string {
	return value.Of{ID: id, Rank: value.Rank{Priority: priority}}.String()
}

// What a candidate that is not ready cannot read or watch is an error of its campaign; what it may do without is none.
func TestUnreadyAndDenied(t *testing.T) {
	bell := "reports" + naming.Unready
	refuse := func(what string, err error) func(string) error {
		return func(name string) error {
			if name == what {
				return err
			}
			return nil
		}
	}
	for name, tt := range map[string]struct {
		how  other
		want error // nil if it waits until it is ready
	}{
		"the bell may not be read":  {other{get: refuse(bell, backend.ErrDenied)}, nil},
		"there are no records":      {other{get: refuse(bell, errors.ErrUnsupported)}, nil},
		"the bell cannot be read":   {other{get: refuse(bell, backend.ErrForeign)}, backend.ErrForeign},
		"the folder cannot be read": {other{list: refuse(bell, backend.ErrForeign)}, backend.ErrForeign},
		"the line may not be read":  {other{line: refuse("reports", backend.ErrDenied)}, backend.ErrDenied},
		"it may not be watched":     {other{watchLine: refuse("reports", backend.ErrDenied)}, backend.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				able := unreadySwitch()
				var l told
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				end := make(chan error, 1)
				go func() {
					term, err := elect.New(as(t, c, "a", tt.how), "reports", &elect.Options{Ready: able.ready, Trace: l.trace}).Campaign(ctx)
					if err == nil {
						err = term.Resign(ctx)
					}
					end <- err
				}()
				if tt.want != nil {
					if err := <-end; !errors.Is(err, tt.want) {
						t.Errorf("the campaign ends with %v, want %v", err, tt.want)
					}
					return
				}
				time.Sleep(time.Minute)
				if len(end) > 0 {
					t.Fatalf("the campaign has ended: %v", <-end)
				}
				if n := len(l.all(trace.Retrying)); n != 1 {
					t.Errorf("in a minute it has told %d times that it is first and not ready", n)
				}
				able.set(nil)
				began := time.Now()
				if err := <-end; err != nil || time.Since(began) > 2*time.Second {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

// Who does not wait gives way to a better one that has joined meanwhile, and says so.
func TestTryCampaignBehindABetterOne(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		how := other{joined: func(j backend.Joined) backend.Joined {
			raw(t, c, ranked("better", 5))
			return j
		}}
		_, err := elect.New(as(t, c, "a", how), "reports", &elect.Options{Priority: 1}).TryCampaign(t.Context())
		if !errors.Is(err, elect.ErrNotFirst) || !strings.Contains(err.Error(), "priority 5") {
			t.Errorf("TryCampaign: %v", err)
		}
		if m := c.Members("reports"); len(m) != 1 {
			t.Errorf("in line stand %v, want the better one", m)
		}
	})
}

// Where nobody may write the header, a candidate with a priority gives way all the same.
func TestPriorityWithoutAMark(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, leave := raw(t, c, "first")
		how := other{put: func(string) error { return backend.ErrDenied }}
		ctx, cancel := context.WithCancel(t.Context())
		r := run(ctx, elect.New(as(t, c, "a", how), "reports", &elect.Options{Priority: 1}))
		synctest.Wait()
		_, leaveBetter := raw(t, c, ranked("better", 5))
		leave()
		time.Sleep(time.Minute)
		if len(r.terms) > 0 {
			t.Error("it leads although a better one stands behind it")
		}
		leaveBetter()
		<-r.terms
		cancel()
		<-r.end
	})
}

// A newcomer has one second to say that it is not ready, too.
func TestNewcomerHasASecond(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		able := unreadySwitch()
		f.join(elect.Options{ID: "a", Ready: able.ready})
		time.Sleep(10 * time.Second)
		f.foreign("b") // which never says so
		began := time.Now()
		for len(f.told["a"].all(trace.Yielded)) == 0 {
			if time.Sleep(10 * time.Millisecond); time.Since(began) > time.Minute {
				t.Fatal("it does not give way to a newcomer")
			}
		}
		if d := time.Since(began); d < time.Second || d > 1100*time.Millisecond {
			t.Errorf("it has given way after %v, want a second", d)
		}
	})
}

// Who waits tells whom for, once for each, and whether that is the gate of a pause. Some drivers do not read positions of who is in
// front.
func TestWhomOneWaitsFor(t *testing.T) {
	for _, unread := range []bool{false, true} {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			again := false
			how := other{watch: func(*backend.Place) (bool, error) { // a watch may end without a change
				if again {
					return false, nil
				}
				again = true
				return true, nil
			}}
			if unread {
				how.place = func(p *backend.Place) { p.Ahead.Position = 0 }
			}
			leader, err := elect.New(client(t, c, "leader"), "reports", &elect.Options{ID: "leader"}).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var l told
			r := run(ctx, elect.New(as(t, c, "a", how), "reports", &elect.Options{ID: "a", Trace: l.trace}))
			synctest.Wait()
			var behind told
			r2 := run(ctx, elect.New(client(t, c, "b"), "reports", &elect.Options{ID: "b", Trace: behind.trace}))
			synctest.Wait()
			if err := leader.Acknowledge(t.Context()); err != nil { // whoever waits reads the header again
				t.Fatal(err)
			}
			time.Sleep(10 * ttl)
			if ev := l.all(trace.Waiting); len(ev) != 1 || ev[0].Err != nil || ev[0].Ahead.Key != leader.Member().Key {
				t.Errorf("it tells %+v, want once that it waits for the leader", ev)
			}
			operator := operate.New(client(t, c, "operator"), "reports", "operator")
			go func() {
				synctest.Wait()
				leader.Resign(t.Context())
			}()
			if _, err := operator.Pause(t.Context(), "for the night"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * ttl)
			paused := 0
			for _, who := range []*told{&l, &behind} {
				ev := who.all(trace.Waiting)
				last := ev[len(ev)-1]
				gate := c.Members("reports")[0]
				if behindGate := last.Ahead.Key == gate.Key; behindGate != errors.Is(last.Err, elect.ErrPaused) && !unread {
					t.Errorf("it tells %+v of the member in front; the gate is %v", last, gate)
				}
				if errors.Is(last.Err, elect.ErrPaused) {
					paused++
				}
			}
			if paused == 0 || paused == 2 && !unread {
				t.Errorf("%d tell that the election is paused", paused)
			}
			cancel()
			<-r.end
			<-r2.end
		})
	}
}

// Errors name who is in front: by its ID if it has one.
func TestWhoIsInFront(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		m, leave := raw(t, c, "web-1")
		e := elect.New(client(t, c, "a"), "reports", nil)
		_, err := e.TryCampaign(t.Context())
		if want := m.Key + ` ("web-1") stands in front`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("TryCampaign: %v, want %q", err, want)
		}
		leave()
		m, leave = raw(t, c, "\n")
		_, err = e.TryCampaign(t.Context())
		if want := m.Key + " stands in front"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("TryCampaign: %v, want %q", err, want)
		}
		leave()

		// What was wrong before is no reason why one waits.
		front, leave := raw(t, c, "web-2")
		b := client(t, c, "b")
		b.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		time.AfterFunc(10*time.Second, b.Heal)
		_, err = elect.New(b, "reports", nil).Campaign(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "waiting behind "+front.Key) {
			t.Errorf("Campaign: %v", err)
		}
		leave()

		// A deadline that comes before it has joined says nothing of who is in front.
		b.Cut()
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err = elect.New(b, "reports", nil).Campaign(ctx); strings.Contains(fmt.Sprint(err), "waiting behind") {
			t.Errorf("Campaign: %v", err)
		}
		b.Heal()

		// Nor does one that comes while it is first and cannot lead.
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err = elect.New(client(t, c, "c"), "reports", &elect.Options{Ready: unreadySwitch().ready}).Campaign(ctx); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "waiting behind") {
			t.Errorf("Campaign: %v", err)
		}
	})
}

// Who has waited in line begins with the shortest pause again when something goes wrong.
func TestPausesAfterWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, leave := raw(t, c, "first")
		b := client(t, c, "a")
		b.Cut()
		ctx, cancel := context.WithCancel(t.Context())
		joined := make(chan time.Time, 10)
		r := run(ctx, elect.New(b, "reports", &elect.Options{Trace: func(ev trace.Event) {
			if ev.Kind == trace.Joined {
				joined <- time.Now()
			}
		}}))
		time.Sleep(time.Minute)
		b.Heal()
		time.Sleep(time.Minute)
		ended := time.Now()
		b.Expire()
		time.Sleep(time.Minute)
		<-joined // the first time
		if d := (<-joined).Sub(ended); d > 50*time.Millisecond {
			t.Errorf("it has joined %v after its session had ended, want at once", d)
		}
		cancel()
		<-r.end
		leave()
	})
}

// An election whose name is too long for records of who is not ready has candidates that are ready or not, all the same.
func TestReadinessWithALongName(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		able := unreadySwitch()
		end := make(chan error, 1)
		go func() {
			term, err := elect.New(client(t, c, "a"), strings.Repeat("x", backend.MaxName), &elect.Options{Ready: able.ready}).Campaign(t.Context())
			if err == nil {
				err = term.Resign(t.Context())
			}
			end <- err
		}()
		time.Sleep(time.Minute)
		if len(end) > 0 {
			t.Fatalf("the campaign has ended: %v", <-end)
		}
		able.set(nil)
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
}

// A line that could not be read sweeps away nothing.
func TestUnreadLineSweepsNothing(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		_, leave := raw(t, f.c, "first")
		var fails atomic.Int32
		how := other{line: func(string) error {
			if fails.Add(1) == 1 {
				return backend.ErrUnavailable
			}
			return nil
		}}
		r := run(f.ctx, elect.New(as(t, f.c, "a", how), "reports", &elect.Options{ID: "a", Ready: unreadySwitch().ready}))
		synctest.Wait()
		f.join(elect.Options{ID: "b", Ready: unreadySwitch().ready})
		position := f.c.Members("reports")[2].Position
		leave()
		for began := time.Now(); fails.Load() == 0 && time.Since(began) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if r := f.c.Record(unready.Record("reports", position)); fails.Load() == 0 || r.Version == backend.Absent {
			t.Errorf("after %d reads of the line the record of one that stands is gone", fails.Load())
		}
		f.running["a"] = r
	})
}

// Where sessions have no session time, terms have no margin.
func TestMarginWithoutASessionTime(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := as(t, c, "a", other{untimed: true})
		term, err := elect.New(b, "reports", &elect.Options{Margin: time.Second}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if d := term.Deadline(); !d.IsZero() || term.Check() != nil {
			t.Errorf("the term ends at %v, and has ended: %v", d, term.Check())
		}
		term.Resign(t.Context())
	})
}

// A candidate that waits tells that its session was lost, before it says that it has left; and one that was always ready
// leaves with one request.
func TestLeavingTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		_, leave := raw(t, c, "first")
		b := client(t, c, "a")
		var l told
		ctx, cancel := context.WithCancel(t.Context())
		r := run(ctx, elect.New(b, "reports", &elect.Options{Trace: l.trace, Ready: func(context.Context) error { return nil }}))
		synctest.Wait()
		b.Expire()
		time.Sleep(time.Second)
		got := fmt.Sprint(l.kinds(trace.Joined, trace.SessionLost, trace.Left, trace.Retrying))
		if want := "[joined session lost left retrying joined]"; got != want {
			t.Errorf("told of %s, want %s", got, want)
		}
		before := c.Requests()
		cancel()
		<-r.end
		if n := c.Requests().Since(before).Of("a"); n != 1 {
			t.Errorf("leaving took %d requests", n)
		}
		leave()
	})
}
