package simulation_test

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
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/rig/simulation"
	"github.com/succession-dev/succession/internal/view"
	"pgregory.net/rapid"
)

// flawed is a backend whose sessions are what wrap makes of them. Elections ask them by the calls that are wrong.
type flawed struct {
	backend.Backend
	wrap func(backend.Session) backend.Session
}

func (f flawed) Session(ctx context.Context) (backend.Session, error) {
	s, err := f.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return &view.Asked{Session: f.wrap(s)}, nil
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

func (s twice) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	once, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	result := make(chan backend.Member, 1)
	go func() {
		if m, err := s.Session.Join(context.WithoutCancel(ctx), line, value, record); err == nil {
			result <- m.Member
		}
	}()
	select {
	case m := <-result:
		return backend.Joined{Member: m}, nil
	case <-once.Done():
		return s.Session.Join(ctx, line, value, record)
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

func (s immortal) Err() error                      { return nil }
func (s immortal) Done() <-chan struct{}           { return nil }
func (s immortal) OnEnd(func(error)) (stop func()) { return func() {} }
func (s immortal) Deadline() time.Time             { return time.Now().Add(simulation.TTL) }

// passer steps over what is pinned in front of it: gates, and the member that sealed the
// election.
type passer struct{ backend.Session }

func (s passer) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err == nil && !p.Ahead.Pinned || err != nil && !errors.Is(err, backend.ErrSealed) {
		return p, err
	}
	l, err := s.Session.Line(ctx, m.Line)
	if err != nil {
		return p, err
	}
	ahead := backend.Member{}
	for _, o := range l.Members {
		switch {
		case o.Position == m.Position && ahead.Key == "":
			return backend.Place{First: true, Token: l.Token(m)}, nil
		case o.Position == m.Position:
			return backend.Place{Ahead: ahead}, nil
		case !o.Pinned:
			ahead = o
		}
	}
	return p, backend.ErrNotMember
}

// lax says that it has raised a fence, and has not.
type lax struct{ backend.Session }

func (s lax) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	was, err := s.Session.Get(ctx, name)
	if err != nil {
		return 0, err
	}
	old, err := backend.ParseHeader(was.Value)
	now, err2 := backend.ParseHeader(value)
	if err == nil && err2 == nil && now.Fence > old.Fence {
		return 1, nil
	}
	return s.Session.Put(ctx, name, value, cond)
}

// obstinate takes a reset of the coordinator for something that passes.
type obstinate struct{ backend.Backend }

func (b obstinate) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if errors.Is(err, backend.ErrReset) {
		err = backend.ErrUnavailable
	}
	return s, err
}

// hasty is a composite that leads by the new coordinator alone as soon as nobody stands
// between it and the gate.
type hasty struct {
	backend.Backend
	from backend.Backend
}

func (b hasty) Close() error { return errors.Join(b.from.Close(), b.Backend.Close()) }

// unpaused steps over the gate of a pause. It has read of the gate, but not that it stands.
type unpaused struct{ passer }

func (s unpaused) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.passer.Ahead(ctx, m)
	if err != nil || !p.First {
		return p, err
	}
	l, err := s.Session.Line(ctx, m.Line)
	p.Header = l.Header
	return p, err
}

func (s unpaused) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.passer.Line(ctx, line)
	if err != nil {
		return l, err
	}
	h, err := header.Of(l.Header)
	h.Choice.Gate = 0
	l.Header = h.Stored()
	return l, err
}

// alone sees nobody behind the first in line.
type alone struct{ backend.Session }

func (s alone) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	l.Members = l.Members[:min(1, len(l.Members))]
	return l, err
}

func (s alone) WatchLine(ctx context.Context, _ string, _ backend.Line) (backend.Line, error) {
	<-ctx.Done()
	return backend.Line{}, context.Cause(ctx)
}

// A planted is a flaw, and how it is found.
type planted struct {
	name  string
	flaws simulation.Flaws
	plan  func(*simulation.Plan) // changes each plan; nil where it does not
	kind  kind
	laws  []string // one of which it is found by
}

// sessions is the flaw of a backend whose sessions are what wrap makes of them.
func sessions(wrap func(backend.Session) backend.Session) simulation.Flaws {
	return simulation.Flaws{Backend: func(b backend.Backend) backend.Backend { return flawed{b, wrap} }}
}

// without has Wait take the place of an act.
func without(act simulation.Act) func(*simulation.Plan) {
	return func(p *simulation.Plan) {
		for i := range p.Steps {
			if p.Steps[i].Do == act {
				p.Steps[i].Do = simulation.Wait
			}
		}
	}
}

// rewound has the log go back in the middle, and an operator do what is to be done then.
// No fence is raised but that.
func rewound(p *simulation.Plan) {
	without(simulation.Fence)(p)
	middle := len(p.Steps) / 2
	p.Steps = slices.Insert(p.Steps, middle, simulation.Step{Do: simulation.Rewind}, simulation.Step{Do: simulation.Recover})
}

func allFlaws() []planted {
	one, moving := kind{elections: 2}, kind{elections: 2, migrate: true}
	return []planted{
		{"leads after any departure", sessions(func(s backend.Session) backend.Session { return middle{s} }), nil, one, []string{"one leader", "token", "place"}},
		{"deadline too late", sessions(func(s backend.Session) backend.Session { return optimist{s} }), nil, one, []string{"deadline"}},
		{"token without the fence", sessions(func(s backend.Session) backend.Session { return bare{s} }), nil, one, []string{"token"}},
		{"write without its guard", sessions(func(s backend.Session) backend.Session { return open{s} }), nil, one, []string{"guarded put"}},
		{"never leaves", sessions(func(s backend.Session) backend.Session { return stay{s} }), nil, one, []string{"ghost", "stall"}},
		{"joins twice", sessions(func(s backend.Session) backend.Session { return twice{s} }), nil, one, []string{"ghost", "stall", "history: vacancy"}},
		{"deaf to its removal", sessions(func(s backend.Session) backend.Session { return deaf{s} }), nil, one, []string{"told", "observer"}},
		{"outlives its session", sessions(func(s backend.Session) backend.Session { return immortal{s} }), nil, one, []string{"place", "one leader", "deadline", "told"}},

		{"a margin that is ignored", simulation.Flaws{}, func(p *simulation.Plan) { p.Margin = 1 }, one, []string{"place", "one leader"}},
		{"a seal that is passed", sessions(func(s backend.Session) backend.Session { return passer{s} }), without(simulation.Gate), one, []string{"place", "seal", "one leader"}},
		{"a gate that is passed", sessions(func(s backend.Session) backend.Session { return passer{s} }), without(simulation.Seal), one, []string{"place", "one leader"}},
		{"a fence that is not raised after a reset", sessions(func(s backend.Session) backend.Session { return lax{s} }), rewound, one, []string{"token"}},
		{"a rewind that goes unnoticed", simulation.Flaws{Backend: func(b backend.Backend) backend.Backend { return obstinate{b} }}, nil, one, []string{"reset"}},
		{"a composite that leads by one side only", simulation.Flaws{Composite: func(from, to backend.Backend) backend.Backend {
			return hasty{flawed{to, func(s backend.Session) backend.Session { return passer{s} }}, from}
		}}, nil, moving, []string{"place", "one leader", "token"}},
		{"a pause that is passed", sessions(func(s backend.Session) backend.Session { return unpaused{passer{s}} }), nil, choices, []string{"place", "one leader"}},
		{"one that is not ready and keeps its place", sessions(func(s backend.Session) backend.Session { return alone{s} }), nil, choices, []string{"ready", "stall", "history: vacancy"}},
		{"a seal of a migration that is passed", sessions(func(s backend.Session) backend.Session { return passer{s} }), nil, moving, []string{"place", "one leader", "token"}},
	}
}

// What the simulation finds in a correct library is nothing. That is worth
// something only as far as it finds flaws: each of these within few schedules.
func TestFlawsAreFound(t *testing.T) {
	lane.Unraced(t)
	const most = 3000
	for _, f := range allFlaws() {
		t.Run(f.name, func(t *testing.T) {
			plans := rapid.Custom(f.kind.draw)
			for seed := range most {
				p := plans.Example(seed)
				if f.plan != nil {
					f.plan(&p)
				}
				var r *simulation.Report
				synctest.Test(t, func(*testing.T) { r = simulation.Run(p, &f.flaws) })
				if len(r.Violations) == 0 {
					continue
				}
				t.Logf("found by schedule %d: %v", seed, r.Violations[0])
				if !slices.Contains(f.laws, r.Violations[0].Law) {
					t.Fatalf("found by the wrong law; want one of %s\n%s", strings.Join(f.laws, ", "), r)
				}
				return
			}
			t.Error("not found in all schedules")
		})
	}
}

// Clocks that drift further than the margin covers let two lead, for about the excess;
// clocks that drift just not so far do not. It is what assumption A1 of docs/safety.md is
// for, and shows that the simulation sees where it ends.
func TestDriftBeyondTheMargin(t *testing.T) {
	for _, margin := range []time.Duration{0, 3 * time.Second} {
		covered := margin
		if margin == 0 {
			covered = simulation.TTL / 10
		}
		for _, tt := range []struct {
			early time.Duration
			want  string
		}{
			{-covered, ""},
			{covered - time.Millisecond, ""},
			{covered + time.Millisecond, "one leader"},
		} {
			t.Run(fmt.Sprint(covered, " ", tt.early), func(t *testing.T) {
				r := run(t, simulation.Plan{
					Clients: 2, Elections: 1, Margin: margin, Early: []time.Duration{tt.early},
					Steps: []simulation.Step{
						{Do: simulation.Join},
						{Do: simulation.Join, Client: 1},
						{Do: simulation.Cut, Then: 2 * simulation.TTL},
					},
				})
				if r.Terms != 2 {
					t.Errorf("there were %d terms, want 2", r.Terms)
				}
				got := ""
				if len(r.Violations) > 0 {
					got = r.Violations[0].Law
				}
				if got != tt.want {
					t.Errorf("the law that is broken is %q, want %q\n%s", got, tt.want, r)
				}
			})
		}
	}
}
