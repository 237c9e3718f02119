package elect_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
)

// What was lost, or asked to resign, is told at once, and not when its work is over; how
// long that went on is told, too.
func TestEndIsToldWhileTheWorkGoesOn(t *testing.T) {
	const deaf = 20 * time.Second // how long the work does not heed its context
	losses := map[error]func(t *testing.T, c *memory.Coordinator, b *memory.Backend){
		backend.ErrSessionEnded: func(_ *testing.T, _ *memory.Coordinator, b *memory.Backend) { b.Expire() },
		elect.ErrAsked: func(t *testing.T, c *memory.Coordinator, _ *memory.Backend) {
			if _, err := operate.New(client(t, c, "operator"), "reports", "").AskToResign(t.Context(), nil); err != nil {
				t.Error(err)
			}
		},
	}
	for why, lose := range losses {
		t.Run(why.Error(), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				a := client(t, c, "a")
				var log bytes.Buffer
				events := make(chan trace.Event, 20)
				e := elect.New(a, "reports", &elect.Options{
					Logger: slog.New(slog.NewTextHandler(&log, nil)),
					Trace: func(ev trace.Event) {
						switch ev.Kind {
						case trace.Joined, trace.Elected, trace.Ended, trace.Left:
							events <- ev
						}
					},
				})
				next := func(want trace.Kind) trace.Event {
					t.Helper()
					ev := <-events
					if ev.Kind != want {
						t.Fatalf("the event is %v, want %v", ev.Kind, want)
					}
					return ev
				}
				ctx, cancel := context.WithCancel(t.Context())
				end := make(chan error, 1)
				go func() {
					busy := deaf // in the first term
					end <- e.Run(ctx, func(ctx context.Context, _ *elect.Term) error {
						time.Sleep(busy)
						busy = 0
						<-ctx.Done()
						return nil
					})
				}()
				next(trace.Joined)
				elected := next(trace.Elected)
				lost := time.Now()
				lose(t, c, a)
				ended := next(trace.Ended)
				if took := time.Since(lost); took > time.Second {
					t.Errorf("the end was told after %v", took)
				}
				if ended.Token != elected.Token || !errors.Is(ended.Err, why) {
					t.Errorf("the end that was told is of token %d: %v; want token %d, %v", ended.Token, ended.Err, elected.Token, why)
				}
				left := next(trace.Left)
				if left.Worked < deaf-time.Second || left.Worked > deaf+time.Second {
					t.Errorf("the work went on for %v as told, want about %v", left.Worked, deaf)
				}
				next(trace.Joined)
				cancel()
				<-end
				if n := strings.Count(log.String(), "its work goes on"); n != 4 { // after 1, 3, 7 and 15 s
					t.Errorf("within %v the log says %d times that the work goes on; want 4\n%s", deaf, n, &log)
				}
			})
		})
	}
}

// The end of Run's context is the end of work that is to begin, and not of the place:
// a guarded write may still tell how far the work has come.
func TestPlaceStandsUntilTheWorkIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var term *elect.Term
		put := func(value string) error {
			_, err := term.Put(t.Context(), "position", []byte(value), backend.Any)
			return err
		}
		err := elect.New(client(t, c, "a"), "reports", nil).Run(ctx, func(ctx context.Context, led *elect.Term) error {
			term = led
			cancel()
			<-ctx.Done()
			if err := term.Check(); err != context.Canceled {
				t.Errorf("after the end of Run's context Check says %v, want the cause of that", err)
			}
			synctest.Wait()
			if err := put("1"); err != nil {
				t.Errorf("a guarded write while the place stands: %v", err)
			}
			return nil
		})
		if err != context.Canceled {
			t.Errorf("Run returned %v, want the cause of its context", err)
		}
		if err := put("2"); !errors.Is(err, backend.ErrNotMember) {
			t.Errorf("a guarded write when the work is over: %v, want ErrNotMember", err)
		}
	})
}

// One candidate that cannot leave in time does not take along the others of its session,
// and leaves when it can.
func TestLeavingTakesNobodyAlong(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		a, b := client(t, c, "a"), client(t, c, "b")
		term, err := elect.New(a, "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer term.Resign(t.Context())
		other, err := elect.New(b, "backups", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Resign(t.Context())

		ctx, cancel := context.WithCancel(t.Context())
		waiting := run(ctx, elect.New(a, "backups", &elect.Options{ResignTimeout: time.Second}))
		synctest.Wait()
		c.Pause()
		cancel()
		if err := <-waiting.end; err != context.Canceled {
			t.Errorf("Run returned %v, want the cause of its context", err)
		}
		time.Sleep(time.Second)
		c.Resume()
		time.Sleep(3 * time.Second) // more than a pause between two attempts
		if err := term.Check(); err != nil {
			t.Errorf("the term of the other election: %v", err)
		}
		if m := c.Members("backups"); len(m) != 1 {
			t.Errorf("%d stand in the line that was to be left, want its leader alone", len(m))
		}
	})
}

// With the session ends what tries to leave it.
func TestLeavingEndsWithTheSession(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) { // which ends when all goroutines have
		a := client(t, c, "a")
		term, err := elect.New(unleavable{a}, "reports", &elect.Options{ResignTimeout: time.Second}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := term.Resign(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("Resign returned %v, want ErrUnavailable", err)
		}
		time.Sleep(time.Minute)
		if n := len(c.Members("reports")); n != 1 {
			t.Errorf("%d stand in line, want the one that cannot leave", n)
		}
		a.Close()
		synctest.Wait()
		if n := len(c.Members("reports")); n != 0 {
			t.Errorf("%d stand in line after Close, want 0", n)
		}
	})
}

// An unleavable backend does not let members go.
type unleavable struct{ backend.Backend }

func (b unleavable) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return unleavableSession{s}, err
}

type unleavableSession struct{ backend.Session }

func (s unleavableSession) Leave(context.Context, backend.Member) error {
	if err := s.Err(); err != nil {
		return err
	}
	return backend.ErrUnavailable
}

// A lingering backend has sessions that stop watching a place only when its member has left, or
// after linger.
type lingering struct {
	backend.Backend
	left chan struct{}
}

func (b *lingering) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return &lingeringSession{s, b}, err
}

const linger = time.Minute

type lingeringSession struct {
	backend.Session
	b *lingering
}

func (s *lingeringSession) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	err := s.Session.WatchPlace(ctx, m, p)
	select {
	case <-s.b.left:
	case <-time.After(linger):
	}
	return err
}

func (s *lingeringSession) Leave(ctx context.Context, m backend.Member) error {
	defer close(s.b.left)
	return s.Session.Leave(ctx, m)
}

// The next in line does not wait for what watched the term of a leader that resigns; the end of the
// term is told before all the same.
func TestLeavesBeforeWatchesEnd(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		b := &lingering{client(t, c, "a"), make(chan struct{})}
		var told []trace.Kind
		term, err := elect.New(b, "reports", &elect.Options{Trace: func(ev trace.Event) {
			if ev.Kind == trace.Ended || ev.Kind == trace.Left {
				told = append(told, ev.Kind)
			}
		}}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the place is watched
		began := time.Now()
		if err := term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d >= linger {
			t.Errorf("the member left only after %v, when its place was watched no more", d)
		}
		if !slices.Equal(told, []trace.Kind{trace.Ended, trace.Left}) {
			t.Errorf("told %v, want that the term has ended, and then that its member has left", told)
		}
	})
}

// Who closes the backend need not resign as well.
func TestTermOfAClosedBackendLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	b := memory.New(&memory.Options{TTL: 100 * time.Millisecond}).Client("a")
	term, err := elect.New(b, "reports", nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Cut() // only the timer tells that the deadline has come
	<-term.Context().Done()
	if err := b.Close(); err != nil {
		t.Log("what stands until its session ends:", err)
	}
	goleak.VerifyNone(t, before)
}
