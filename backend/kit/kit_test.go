package kit_test

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
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

const ttl = 10 * time.Second

// A coordinator opens and releases sessions, each after a while.
type coordinator struct {
	opening, releasing time.Duration
	opened, released   atomic.Int32
	sessions           *kit.Sessions
}

// A session has a Life, and two methods that call the coordinator.
type session struct {
	*kit.Life
	others
	lease lease.Lease
}

// The others are nil: tests call none of their methods. They lie deeper than those of the Life, which count.
type (
	others struct{ deep }
	deep   struct{ backend.Session }
)

// Gone waits for nothing but the end of ctx.
func (s *session) Gone(ctx context.Context, _ backend.Member) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

var errRan = errors.New("it ran")

// saysRan reports whether err is that of a session that has ended because of errRan.
func saysRan(err error) bool {
	return errors.Is(err, backend.ErrSessionEnded) && strings.Contains(err.Error(), errRan.Error())
}

func (s *session) Get(context.Context, string) (backend.Record, error) {
	return backend.Record{Version: 1}, errRan
}

func (s *session) Err() error                      { return s.Life.Err() }
func (s *session) Done() <-chan struct{}           { return s.Life.Done() }
func (s *session) Close(ctx context.Context) error { return s.Life.Close(ctx) }

func newCoordinator(opening, releasing time.Duration) *coordinator {
	c := &coordinator{opening: opening, releasing: releasing}
	c.sessions = kit.NewSessions(kit.Config{Scheme: "test", Open: c.open, Connect: 4 * time.Second, Patience: 2 * time.Second})
	return c
}

func (c *coordinator) open(ctx context.Context) (kit.Session, error) {
	if err := backoff.Sleep(ctx, c.opening); err != nil {
		return nil, backend.ErrUnavailable
	}
	c.opened.Add(1)
	s := new(session)
	s.lease.Extend(clock.Now(), ttl)
	s.Life = c.sessions.NewLife(kit.Rules{
		Over: func() error {
			if s.lease.Left() > 0 {
				return nil
			}
			return errors.New("nobody renewed it")
		},
		Left:   s.lease.Left,
		Ending: s.lease.End,
		Release: func(ctx context.Context) error {
			err := backoff.Sleep(ctx, c.releasing)
			c.released.Add(1)
			return err
		},
		Stands: func() string { return "Friday" },
	})
	s.Start(func() { <-s.Context().Done() })
	return s, nil
}

func open(t *testing.T, c *coordinator) *kit.Adapter {
	t.Helper()
	s, err := c.sessions.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.(*kit.Adapter)
}

// A driver is asked for a session again and again, each time with more time, as long as what is wrong may pass.
func TestOpensAgain(t *testing.T) {
	slow := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	refused := func(context.Context) error { return errRan }
	away := func(context.Context) error { return fmt.Errorf("%w: away", backend.ErrUnavailable) }
	works := func(context.Context) error { return nil }
	tests := []struct {
		name     string
		attempt  time.Duration
		attempts []func(context.Context) error // the last one again and again
		passing  func(error, time.Duration) bool
		want     error
		says     string
		calls    int
		lasts    time.Duration // with pauses of a second at most
	}{
		{name: "at once", attempt: time.Second, attempts: []func(context.Context) error{works}, calls: 1},
		{name: "the first takes too long", attempt: time.Second, attempts: []func(context.Context) error{slow, works}, calls: 2, lasts: time.Second},
		{name: "each has twice the time", attempt: time.Second / 2, attempts: []func(context.Context) error{slow, slow, slow, works}, calls: 4, lasts: 7 * time.Second / 2},
		{name: "not in time", attempt: 2 * time.Second, attempts: []func(context.Context) error{slow}, want: backend.ErrUnavailable, says: "no session was opened within 4s: coordinator unavailable: no answer within 2s", calls: 2, lasts: 4 * time.Second},
		{name: "what went wrong last", attempt: time.Second, attempts: []func(context.Context) error{away, slow}, want: backend.ErrUnavailable, says: "no answer within 2s", calls: 4, lasts: 4 * time.Second},
		{name: "a failure at once does not give the next more time", attempt: time.Second, attempts: []func(context.Context) error{away, away, away, slow, works}, calls: 5, lasts: time.Second},
		{name: "the end of the time hides nothing", attempt: time.Second, attempts: []func(context.Context) error{func(ctx context.Context) error { <-ctx.Done(); return errRan }}, want: errRan, calls: 1, lasts: time.Second},
		{name: "it passes", attempt: time.Second, attempts: []func(context.Context) error{away, away, works}, calls: 3},
		{name: "it is refused", attempt: time.Second, attempts: []func(context.Context) error{away, refused}, want: errRan, calls: 2},
		{name: "a refusal that may pass", attempt: time.Second, attempts: []func(context.Context) error{refused, refused, works},
			passing: func(err error, since time.Duration) bool { return errors.Is(err, errRan) && since < time.Second }, calls: 3},
		{name: "what does not pass for this driver", attempt: time.Second, attempts: []func(context.Context) error{away, works}, passing: func(error, time.Duration) bool { return false }, want: backend.ErrUnavailable, calls: 1},
		{name: "a refusal that lasts", attempt: time.Second, attempts: []func(context.Context) error{refused},
			passing: func(_ error, since time.Duration) bool { return since < time.Second }, want: errRan, lasts: time.Second},
		{name: "once", attempts: []func(context.Context) error{away, works}, want: backend.ErrUnavailable, calls: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, calls := newCoordinator(0, 0), 0
				c.sessions.Close()
				c.sessions = kit.NewSessions(kit.Config{Scheme: "test", Connect: 4 * time.Second, Patience: time.Second, Attempt: test.attempt, Passing: test.passing,
					Open: func(ctx context.Context) (kit.Session, error) {
						f := test.attempts[min(calls, len(test.attempts)-1)]
						calls++
						if err := f(ctx); err != nil {
							return nil, err
						}
						return c.open(ctx)
					}})
				defer c.sessions.Close()
				began := time.Now()
				_, err := c.sessions.Session(t.Context())
				took := time.Since(began)
				if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), test.says) {
					t.Errorf("Session returned %v; want %v, %q", err, test.want, test.says)
				}
				if test.calls > 0 && calls != test.calls || took < test.lasts || took > test.lasts+time.Second {
					t.Errorf("Open was called %d times within %v; want %d, %v", calls, took, test.calls, test.lasts)
				}
			})
		})
	}
}

// All callers of Session share one opening, even if the first has given up. Then the session is
// live.
func TestOneOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(time.Second, 0)
		defer c.sessions.Close()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.sessions.Session(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Session returned %v when its context had ended", err)
		}
		first := make(chan *kit.Adapter)
		go func() { first <- open(t, c) }()
		if second := open(t, c); second != <-first {
			t.Error("two who asked at once got two sessions")
		}
		if n := c.opened.Load(); n != 1 {
			t.Errorf("%d sessions were opened", n)
		}
	})
}

// An opening has a bound, and its error reaches all that wait for it.
func TestOpeningFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(time.Hour, 0)
		defer c.sessions.Close()
		begun := time.Now()
		_, err := c.sessions.Session(t.Context())
		if !errors.Is(err, backend.ErrUnavailable) || err.Error() != "test: session: coordinator unavailable" || time.Since(begun) != 4*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// A session whose time is over has ended for each call at once, and soon for those that wait.
// Session then returns another one.
func TestLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		s := open(t, c)
		begun := time.Now()
		err := s.Gone(t.Context(), backend.Member{Line: "reports"})
		if !errors.Is(err, backend.ErrSessionEnded) || time.Since(begun) != ttl ||
			err.Error() != "test: gone reports: session ended: nobody renewed it" {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		<-s.Done()
		if next := open(t, c); next == s || s.Err() == nil || next.Err() != nil {
			t.Errorf("the session after one that ended: the same %t, errors %v and %v", next == s, s.Err(), next.Err())
		}
		synctest.Wait() // releasing goes on in the background
		if n := c.released.Load(); n != 1 {
			t.Errorf("%d sessions were released", n)
		}
	})
}

// A call that fails returns the zero value. It does not begin if the session has ended or an
// argument is invalid.
func TestCallRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		s := open(t, c)
		if r, err := s.Get(t.Context(), "x"); !errors.Is(err, errRan) || r.Version != 0 {
			t.Errorf("a call that fails: %v, %v", r, err)
		}
		if _, err := s.Get(t.Context(), "/x"); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("a bad name: %v", err)
		}
		if _, err := s.Join(t.Context(), "x", "\xff", ""); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("a bad value: %v", err)
		}
		if _, err := s.Put(t.Context(), "x", make([]byte, backend.MaxRecord+1), nil); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("a record that is too long: %v", err)
		}
		ended, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		cancel(why)
		if _, err := s.Get(ended, "x"); !errors.Is(err, why) {
			t.Errorf("a context that has ended: %v", err)
		}
		s.Close(t.Context())
		if _, err := s.Get(t.Context(), "x"); !errors.Is(err, backend.ErrSessionEnded) {
			t.Errorf("a session that has ended: %v", err)
		}
		bound, release := s.Session.(*session).Bind(t.Context())
		defer release()
		if !errors.Is(context.Cause(bound), backend.ErrSessionEnded) {
			t.Errorf("a context bound to it has the cause %v", context.Cause(bound))
		}
	})
}

// Close of the backend waits for every session that is being released. Its error names each
// that could not be.
func TestCloseAwaitsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, time.Second)
		for range 3 {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			err := open(t, c).Close(ended)
			if !errors.Is(err, backend.ErrUnavailable) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stands until Friday") {
				t.Errorf("Close whose context has ended: %v", err)
			}
		}
		open(t, c)
		if err := c.sessions.Close(); err != nil {
			t.Error(err)
		}
		if n := c.released.Load(); n != 4 {
			t.Errorf("%d of 4 sessions were released when Close returned", n)
		}
		if err := c.sessions.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
		if _, err := c.sessions.Session(t.Context()); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("Session after Close: %v", err)
		}
		if n := c.opened.Load(); n != 4 {
			t.Errorf("%d sessions were opened, want 4, and none after Close", n)
		}
	})
}

// Close takes no longer than its patience. It says that members stand, and leaves no goroutine
// running.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, time.Hour)
		open(t, c)
		begun := time.Now()
		err := c.sessions.Close()
		if !errors.Is(err, backend.ErrUnavailable) || !strings.HasPrefix(err.Error(), "test: close: ") || time.Since(begun) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// When the backend is closed, callers that wait for an opening learn of it at once. A session
// that is opened nevertheless is released.
func TestCloseWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(time.Second, 0)
		told := make(chan error)
		go func() {
			_, err := c.sessions.Session(t.Context())
			told <- err
		}()
		synctest.Wait()
		closed := make(chan error)
		go func() { closed <- c.sessions.Close() }()
		begun := time.Now()
		if err := <-told; !errors.Is(err, backend.ErrClosed) || time.Since(begun) != 0 {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if err := <-closed; err != nil || c.released.Load() != 1 {
			t.Errorf("Close: %v; %d sessions were released", err, c.released.Load())
		}
	})
}
