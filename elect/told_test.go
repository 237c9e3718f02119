package elect_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
)

// Whoever gets the term from a listener may resign while others are still told of it. Nothing of the term begins after that.
func TestResignWhileOthersAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		e := elect.New(client(t, c, "a"), "reports", &elect.Options{History: 8})
		resigned := make(chan error)
		defer e.Listen(func(term *elect.Term) {
			if term == nil {
				return
			}
			go func() { resigned <- term.Resign(t.Context()) }()
			time.Sleep(time.Minute) // a listener that blocks, which it must not
		})()
		began := time.Now()
		campaign := make(chan struct{})
		go func() { defer close(campaign); _, _ = e.Campaign(t.Context()) }()
		if err := <-resigned; err != nil || time.Since(began) > time.Second {
			t.Errorf("Resign: %v, after %v", err, time.Since(began))
		}
		<-campaign
		synctest.Wait()
		if past, err := operate.New(client(t, c, "b"), "reports", "").History(t.Context()); err != nil || len(past) != 1 || past[0].Ended.IsZero() {
			t.Errorf("the history is %+v, %v; want one term that has ended", past, err)
		}
	})
}

// The deadline counts while a listener is told, too.
func TestDeadlineWhileOthersAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		a := client(t, c, "a")
		e := elect.New(a, "reports", nil)
		defer e.Listen(func(term *elect.Term) {
			if term == nil {
				return
			}
			a.Cut()
			select {
			case <-term.Context().Done():
			case <-time.After(time.Hour):
				t.Error("the context lasts an hour after the coordinator was cut off")
			}
			a.Heal()
		})()
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		term.Resign(t.Context())
	})
}

// If who is told of a campaign or a term panics, nobody is left in the line.
func TestPanicOfWhoIsTold(t *testing.T) {
	const log, listener = -1, -2
	for name, kind := range map[string]trace.Kind{"joined": trace.Joined, "waiting": trace.Waiting, "elected": trace.Elected, "log": log, "listener": listener} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				o := &elect.Options{Trace: func(ev trace.Event) {
					if ev.Kind == kind {
						panic("boom")
					}
				}}
				if kind == log {
					o.Logger = slog.New(boom{slog.DiscardHandler})
				}
				if kind == trace.Waiting {
					first, err := elect.New(client(t, c, "b"), "reports", nil).Campaign(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					defer first.Resign(t.Context())
				}
				e := elect.New(client(t, c, "a"), "reports", o)
				if kind == listener {
					defer e.Listen(func(term *elect.Term) {
						if term != nil {
							panic("boom")
						}
					})()
				}
				func() {
					defer func() {
						if recover() != "boom" {
							t.Error("the panic did not come through")
						}
					}()
					_, _ = e.Campaign(t.Context())
				}()
				synctest.Wait()
				for _, m := range c.Members("reports") {
					if kind != trace.Waiting || m.Position > 1 {
						t.Errorf("%s stands after the panic", m.Key)
					}
				}
				if term := e.Term(); term != nil {
					t.Errorf("Term is %v after the panic", term)
				}
			})
		})
	}
}

// boom panics when somebody is elected.
type boom struct{ slog.Handler }

func (boom) Enabled(context.Context, slog.Level) bool { return true }
func (b boom) WithAttrs([]slog.Attr) slog.Handler     { return b }

func (boom) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "elected" {
		panic("boom")
	}
	return nil
}

// A watch that fails says nothing of the place: the candidate goes on with the one that it knew.
func TestPlaceAfterAWatchThatFailed(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		first, err := elect.New(client(t, c, "b"), "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := &vague{}
		b := view.Of(client(t, c, "a"), func(s backend.Session) backend.Session { return &vagueSession{s, v} })
		ctx, cancel := context.WithCancel(t.Context())
		ra := run(ctx, elect.New(b, "reports", nil))
		time.Sleep(time.Minute) // several watches have failed
		v.heal()
		first.Resign(t.Context())
		select {
		case <-ra.terms:
			cancel()
			<-ra.end
		case err := <-ra.end:
			t.Errorf("Run returned %v", err)
			cancel()
		}
	})
}

// A vague coordinator does not answer reads of records, and each watch of a place ends as the time comes, with a place that says nothing.
type vague struct {
	mu   sync.Mutex
	over bool
}

func (v *vague) heal() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
}

func (v *vague) ended() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.over
}

type vagueSession struct {
	backend.Session
	v *vague
}

func (s *vagueSession) Join(ctx context.Context, line, value, _ string) (backend.Joined, error) {
	return s.Session.Join(ctx, line, value, "")
}

func (s *vagueSession) Get(ctx context.Context, name string) (backend.Record, error) {
	if !s.v.ended() {
		return backend.Record{}, backend.ErrUnavailable
	}
	return s.Session.Get(ctx, name)
}

func (s *vagueSession) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if !p.First && p.Ahead.Key == "" {
		return fmt.Errorf("%w: asked for a place that says nothing", backend.ErrInvalid)
	}
	if s.v.ended() {
		return s.Session.WatchPlace(ctx, m, p)
	}
	<-ctx.Done()
	*p = backend.Place{}
	return context.Cause(ctx)
}
