package elect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
)

const ttl = 10 * time.Second

// bubble runs f in virtual time against a coordinator of its own.
func bubble(t *testing.T, f func(t *testing.T, c *memory.Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, memory.New(&memory.Options{TTL: ttl}))
	})
}

func client(t *testing.T, c *memory.Coordinator, name string) *memory.Backend {
	t.Helper()
	b := c.Client(name)
	t.Cleanup(func() { b.Close() })
	return b
}

// running is a candidate in Run, whose function blocks until its context ends or
// it is told to return.
type running struct {
	terms chan *elect.Term // each term that began
	stop  chan error       // what the function is to return
	end   chan error       // what Run returned
}

func run(ctx context.Context, e *elect.Election) *running {
	r := &running{make(chan *elect.Term, 10), make(chan error), make(chan error, 1)}
	go func() {
		r.end <- e.Run(ctx, func(ctx context.Context, t *elect.Term) error {
			r.terms <- t
			select {
			case <-ctx.Done():
				return fmt.Errorf("the function's own error: %w", ctx.Err())
			case err := <-r.stop:
				return err
			}
		})
	}()
	return r
}

func TestRunReturnsWhatTheFunctionReturned(t *testing.T) {
	for _, want := range []error{nil, errors.New("broken")} {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			e := elect.New(client(t, c, "a"), "reports", nil)
			r := run(t.Context(), e)
			term := <-r.terms
			r.stop <- want
			if got := <-r.end; got != want {
				t.Errorf("Run returned %v, want %v", got, want)
			}
			if err := term.Check(); !errors.Is(err, elect.ErrResigned) {
				t.Errorf("Check after the end: %v, want ErrResigned", err)
			}
			if _, line, err := e.Line(t.Context()); err != nil || len(line) != 0 {
				t.Errorf("after Run the line is %v, %v; want it empty", line, err)
			}
		})
	}
}

// What ends while Run resigns was there while it led.
func TestRunReturnsWhatTheFunctionReturnedBeforeItsContextEnded(t *testing.T) {
	want := errors.New("broken")
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		a := client(t, c, "a")
		r := run(ctx, elect.New(a, "reports", nil))
		<-r.terms
		a.Delay(time.Second, time.Second)
		time.AfterFunc(500*time.Millisecond, cancel) // the request to leave is on its way
		r.stop <- want
		if got := <-r.end; got != want {
			t.Errorf("Run returned %v, want %v", got, want)
		}
	})
}

func TestRunCampaignsAgainAfterALoss(t *testing.T) {
	losses := []struct {
		name string
		lose func(t *testing.T, c *memory.Coordinator, b *memory.Backend, term *elect.Term)
		why  error
	}{
		{"the session expires", func(t *testing.T, c *memory.Coordinator, b *memory.Backend, _ *elect.Term) {
			b.Expire()
		}, backend.ErrSessionEnded},
		{"an operator removes the member", func(t *testing.T, c *memory.Coordinator, _ *memory.Backend, term *elect.Term) {
			c.Remove("reports", term.Member().Key)
		}, elect.ErrRemoved},
		{"somebody asks for it", func(t *testing.T, c *memory.Coordinator, _ *memory.Backend, term *elect.Term) {
			l, err := operate.New(client(t, c, "operator"), "reports", "").AskToResign(t.Context(), nil)
			if err != nil || l.Token != term.Token() {
				t.Errorf("AskToResign: %+v, %v", l, err)
			}
		}, elect.ErrAsked},
	}
	for _, tt := range losses {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				ctx, cancel := context.WithCancel(t.Context())
				a, b := client(t, c, "a"), client(t, c, "b")
				ra := run(ctx, elect.New(a, "reports", &elect.Options{ID: "a"}))
				first := <-ra.terms
				rb := run(ctx, elect.New(b, "reports", &elect.Options{ID: "b"}))
				synctest.Wait()

				tt.lose(t, c, a, first)
				<-first.Context().Done()
				var lost *elect.LostError
				if cause := context.Cause(first.Context()); !errors.As(cause, &lost) || !errors.Is(cause, elect.ErrLost) || !errors.Is(cause, tt.why) {
					t.Errorf("the cause is %v, want a LostError because of %v", cause, tt.why)
				}
				second := <-rb.terms
				rb.stop <- nil // b resigns; a must be in line again, behind it
				third := <-ra.terms
				if !(first.Token() < second.Token() && second.Token() < third.Token()) {
					t.Errorf("tokens are %d, %d, %d; want them to grow", first.Token(), second.Token(), third.Token())
				}
				if err := first.Check(); !errors.Is(err, elect.ErrLost) {
					t.Errorf("the first term has revived: %v", err)
				}
				cancel()
				if err := <-ra.end; err != context.Canceled {
					t.Errorf("Run of a returned %v, want the cause of its context", err)
				}
				if err := <-rb.end; err != nil {
					t.Errorf("Run of b returned %v", err)
				}
			})
		})
	}
}

// A leader that is cut off hears nothing; only the clock can tell it.
func TestCutLeaderEndsBeforeItsSuccessorBegins(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a, b := client(t, c, "a"), client(t, c, "b")
		margin := 2 * time.Second
		ra := run(ctx, elect.New(a, "reports", &elect.Options{Margin: margin}))
		first := <-ra.terms
		rb := run(ctx, elect.New(b, "reports", nil))
		synctest.Wait()
		a.Cut()
		cut := time.Now()
		deadline := first.Deadline()
		<-first.Context().Done()
		if ended := time.Now(); ended.After(deadline) {
			t.Errorf("the term ended %v after its deadline", ended.Sub(deadline))
		}
		if !errors.Is(context.Cause(first.Context()), elect.ErrDeadline) {
			t.Errorf("the cause is %v, want ErrDeadline", context.Cause(first.Context()))
		}
		ended := time.Now()
		second := <-rb.terms
		if gap := time.Since(ended); gap < margin {
			t.Errorf("the successor began %v after the term's end, want at least the margin, %v", gap, margin)
		}
		if took := time.Since(cut); took > 2*ttl {
			t.Errorf("nobody led for %v", took)
		}
		if second.Token() <= first.Token() {
			t.Errorf("the token went from %d to %d", first.Token(), second.Token())
		}
		a.Heal()
		cancel()
		<-ra.end
		<-rb.end
	})
}

func TestRunWaitsForTheFunctionBeforeItResigns(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		began, release, end := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		e := elect.New(client(t, c, "a"), "reports", nil)
		go func() {
			end <- e.Run(ctx, func(ctx context.Context, _ *elect.Term) error {
				close(began)
				<-release // does not heed its context
				return nil
			})
		}()
		<-began
		cancel()
		synctest.Wait()
		if n := len(c.Members("reports")); n != 1 {
			t.Errorf("%d members stand while the function is at work, want 1", n)
		}
		close(release)
		if err := <-end; err != context.Canceled {
			t.Errorf("Run returned %v, want the cause of its context", err)
		}
		if n := len(c.Members("reports")); n != 0 {
			t.Errorf("%d members stand after Run, want 0", n)
		}
	})
}

func TestRunResignsWhenTheFunctionPanics(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		e := elect.New(client(t, c, "a"), "reports", nil)
		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("the panic did not come through")
				}
			}()
			e.Run(t.Context(), func(context.Context, *elect.Term) error { panic("boom") })
		}()
		if n := len(c.Members("reports")); n != 0 {
			t.Errorf("%d members stand after the panic, want 0", n)
		}
	})
}

// The context of Campaign bounds the waiting and not the term.
func TestCampaignContext(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, enough)
		defer cancel()
		term, err := elect.New(client(t, c, "a"), "reports", nil).Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = elect.New(client(t, c, "b"), "reports", nil).Campaign(ctx)
		if !errors.Is(err, enough) || !strings.Contains(err.Error(), term.Member().Key) {
			t.Errorf("Campaign behind a leader returned %v, want the cause of its context, and who leads", err)
		}
		if n := len(c.Members("reports")); n != 1 {
			t.Errorf("%d members stand, want the leader alone", n)
		}
		if err := term.Check(); err != nil {
			t.Errorf("the term ended with the context of its campaign: %v", err)
		}
		if d := term.SessionDeadline().Sub(term.Deadline()); d != ttl/10 {
			t.Errorf("the session's deadline is %v after the term's, want the margin, %v", d, ttl/10)
		}
		if got, want := fmt.Sprint(term), fmt.Sprintf("term of %q with token %d", "reports", term.Token()); got != want {
			t.Errorf("the term calls itself %s, want %s", got, want)
		}
		for range 2 { // twice: resigning again is not an error
			if err := term.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// The answer that nobody is in front may come when the term's deadline has passed and
// the session's has not. No term begins then: it would be over at once.
func TestNoTermBeginsAfterItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := client(t, c, "a")
		slow := true
		term, err := elect.New(b, "reports", &elect.Options{Trace: func(ev trace.Event) {
			if ev.Kind == trace.Joined && slow { // what comes next is the question who is ahead
				slow = false
				b.Delay(0, ttl-ttl/20)
				time.AfterFunc(ttl, func() { b.Delay(0, 0) })
			}
		}}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := term.Check(); err != nil {
			t.Errorf("the term was over as it began: %v", err)
		}
		term.Resign(t.Context())
	})
}

// A deaf backend hears of nothing: what its sessions watch never changes.
type deaf struct{ backend.Backend }

type deafSession struct{ backend.Session }

func (b deaf) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return deafSession{s}, err
}

func (s deafSession) Gone(ctx context.Context, m backend.Member) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (s deafSession) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if after == 0 {
		return s.Session.Watch(ctx, name, after)
	}
	<-ctx.Done()
	return backend.Record{}, context.Cause(ctx)
}

// A watch may die unseen: then a leader notices by itself that its member has gone, and
// that it was asked to resign.
func TestLeaderLooksAgain(t *testing.T) {
	for want, act := range map[error]func(c *memory.Coordinator, term *elect.Term, op *operate.Operator) error{
		elect.ErrRemoved: func(c *memory.Coordinator, term *elect.Term, _ *operate.Operator) error {
			c.Remove("reports", term.Member().Key)
			return nil
		},
		elect.ErrAsked: func(_ *memory.Coordinator, _ *elect.Term, op *operate.Operator) error {
			_, err := op.AskToResign(context.Background(), nil)
			return err
		},
	} {
		t.Run(want.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				term, err := elect.New(deaf{client(t, c, "a")}, "reports", nil).Campaign(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer term.Resign(t.Context())
				synctest.Wait()
				if err := act(c, term, operate.New(client(t, c, "operator"), "reports", "")); err != nil {
					t.Fatal(err)
				}
				select {
				case <-term.Context().Done():
				case <-time.After(ttl + ttl/4): // how often it looks
				}
				synctest.Wait()
				if err := term.Check(); !errors.Is(err, want) {
					t.Errorf("a session time and a quarter later the term says %v, want %v", err, want)
				}
			})
		})
	}
}

func TestSealedElectionRefuses(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		s, err := client(t, c, "a").Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := s.Join(t.Context(), "reports", "a", "")
		if err != nil {
			t.Fatal(err)
		}
		waiting := run(t.Context(), elect.New(client(t, c, "b"), "reports", nil))
		synctest.Wait()
		if err := s.Pin(t.Context(), m.Member, backend.Header{Sealed: "etcd://h1"}, backend.Absent); err != nil {
			t.Fatal(err)
		}
		var sealed *backend.SealedError
		if err := <-waiting.end; !errors.As(err, &sealed) || sealed.To != "etcd://h1" {
			t.Errorf("who waited behind the seal got %v, want a SealedError with the address", err)
		}
		_, err = elect.New(client(t, c, "c"), "reports", nil).Campaign(t.Context())
		if !errors.Is(err, backend.ErrSealed) {
			t.Errorf("who came later got %v, want ErrSealed", err)
		}
	})
}

// When all are told to stop at one moment, nobody begins to lead because another has just left.
func TestStopAllAtOnce(t *testing.T) {
	for range 200 {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			ctx, stop := context.WithCancel(t.Context())
			var led, ended sync.WaitGroup
			led.Add(1)
			for _, id := range []string{"a", "b", "c"} {
				e := elect.New(client(t, c, id), "reports", nil)
				ended.Go(func() {
					err := e.Run(ctx, func(ctx context.Context, term *elect.Term) error {
						if term.Context().Err() != nil {
							t.Errorf("%s begins to lead after it was told to stop", id)
							return nil
						}
						led.Done()
						<-ctx.Done()
						return nil
					})
					if !errors.Is(err, context.Canceled) {
						t.Errorf("Run of %s: %v", id, err)
					}
				})
			}
			led.Wait()
			synctest.Wait() // the others wait in line
			stop()
			ended.Wait()
		})
	}
}
