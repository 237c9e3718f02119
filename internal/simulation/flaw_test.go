package simulation_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/simulation"
	"pgregory.net/rapid"
)

// flawed is a backend whose sessions are what wrap makes of them.
type flawed struct {
	backend.Backend
	wrap func(backend.Session) backend.Session
}

func (f flawed) Session(ctx context.Context) (backend.Session, error) {
	s, err := f.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return f.wrap(s), nil
}

// middle takes a departure in the middle of the line for its turn.
type middle struct{ backend.Session }

func (s middle) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || p.First {
		return p, err
	}
	if err := s.Gone(ctx, p.Ahead); err != nil {
		return p, err
	}
	return backend.Place{First: true, Token: m.Position}, nil
}

// optimist believes that its session lasts longer than it does.
type optimist struct{ backend.Session }

func (s optimist) Deadline() time.Time { return s.Session.Deadline().Add(2 * time.Second) }

// bare gives the position for the token.
type bare struct{ backend.Session }

func (s bare) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	p.Token = m.Position
	return p, err
}

// open writes records without their guard.
type open struct{ backend.Session }

func (s open) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	return s.Session.Put(ctx, name, value, &backend.If{Version: cond.Version})
}

// stay believes to have left.
type stay struct{ backend.Session }

func (stay) Leave(context.Context, backend.Member) error { return nil }

// twice joins again where the first answer was late, and forgets the first.
type twice struct{ backend.Session }

func (s twice) Join(ctx context.Context, line, value string) (backend.Member, error) {
	once, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	result := make(chan backend.Member, 1)
	go func() {
		if m, err := s.Session.Join(context.WithoutCancel(ctx), line, value); err == nil {
			result <- m
		}
	}()
	select {
	case m := <-result:
		return m, nil
	case <-once.Done():
		return s.Session.Join(ctx, line, value)
	}
}

// deaf does not hear of its own removal.
type deaf struct{ backend.Session }

func (s deaf) Gone(ctx context.Context, m backend.Member) error {
	if p, err := s.Ahead(ctx, m); err == nil && p.First {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return s.Session.Gone(ctx, m)
}

// immortal does not see the end of its session.
type immortal struct{ backend.Session }

func (s immortal) Err() error            { return nil }
func (s immortal) Done() <-chan struct{} { return nil }
func (s immortal) Deadline() time.Time   { return time.Now().Add(simulation.TTL) }

// What the simulation finds in a correct library is nothing. That is worth
// something only as far as it finds flaws: each of these within few schedules.
func TestFlawsAreFound(t *testing.T) {
	flaws := []struct {
		name string
		wrap func(backend.Session) backend.Session
		laws []string // one of which it is found by
	}{
		{"leads after any departure", func(s backend.Session) backend.Session { return middle{s} }, []string{"one leader", "token", "place"}},
		{"deadline too late", func(s backend.Session) backend.Session { return optimist{s} }, []string{"deadline"}},
		{"token without the fence", func(s backend.Session) backend.Session { return bare{s} }, []string{"token"}},
		{"write without its guard", func(s backend.Session) backend.Session { return open{s} }, []string{"guarded put"}},
		{"never leaves", func(s backend.Session) backend.Session { return stay{s} }, []string{"ghost", "stall"}},
		{"joins twice", func(s backend.Session) backend.Session { return twice{s} }, []string{"ghost", "stall"}},
		{"deaf to its removal", func(s backend.Session) backend.Session { return deaf{s} }, []string{"told", "observer"}},
		{"outlives its session", func(s backend.Session) backend.Session { return immortal{s} }, []string{"place", "one leader", "deadline", "told"}},
	}
	const most = 3000
	plans := rapid.Custom(kind{elections: 2}.draw)
	for _, f := range flaws {
		t.Run(f.name, func(t *testing.T) {
			for seed := range most {
				p := plans.Example(seed)
				var r *simulation.Report
				synctest.Test(t, func(*testing.T) {
					r = simulation.Run(p, &simulation.Flaws{Backend: func(b backend.Backend) backend.Backend { return flawed{b, f.wrap} }})
				})
				if len(r.Violations) == 0 {
					continue
				}
				t.Logf("found by schedule %d: %v", seed, r.Violations[0])
				for _, law := range f.laws {
					if r.Violations[0].Law == law {
						return
					}
				}
				t.Fatalf("found by the wrong law; want one of %s\n%s", strings.Join(f.laws, ", "), r)
			}
			t.Error(errors.New("not found in all schedules"))
		})
	}
}
