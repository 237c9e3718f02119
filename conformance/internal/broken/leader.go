package broken

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
)

var leaderFlaws = []Flaw{
	{
		Name:   "sorted as text",
		Breaks: "G1: candidates stand in the order of their positions as text, so that 10 stands in front of 9",
		Must:   "G1.churn G4.order",
		May:    "G7.released G1 G8 G9.campaigns G10.churn Fault",
		election: candidates(func(c *candidate) backend.Session {
			return &sorted{c, func(a, b backend.Member) int { return cmp.Compare(fmt.Sprint(a.Position), fmt.Sprint(b.Position)) }}
		}),
	},
	{
		Name:     "cached leadership",
		Breaks:   "G1, G7: Check compares no clocks, it says what was found at the last look, seconds ago",
		Must:     "G1.cut G1.late G7.cut Fault.deaf Fault.paused",
		May:      "G1 G7 G8.waiter-removed Run.lost Fault",
		election: terms(func(_ backend.Backend, t election.Term) election.Term { return newCachedTerm(t) }),
	},
	{
		Name:     "timer alone",
		Breaks:   "G1, G7: a leader looks at its deadline, and not at what it is told of its session before that",
		Must:     "G7.expired G7.closed Fault.expired",
		Short:    true,
		May:      "G7.released Fault.expired",
		election: candidates(func(c *candidate) backend.Session { return &timerAlone{candidate: c} }),
	},
	{
		Name:     "two seconds more",
		Breaks:   "G1, G7: a leader takes its session to live for two seconds longer than it has been promised",
		Must:     "G7.cut G7.margin Fault.deaf",
		May:      "G7.expired G1 G7.closed G7.released Fault",
		election: candidates(func(c *candidate) backend.Session { return &timerAlone{candidate: c, more: 2 * time.Second} }),
	},
}

// sorted is a session that shows lines in an order of its own.
type sorted struct {
	*candidate
	order func(a, b backend.Member) int
}

func (s *sorted) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.candidate.Ahead(ctx, m)
	if err != nil {
		return p, err
	}
	line, err := s.Line(ctx, m.Line)
	if err != nil {
		return p, err
	}
	slices.SortFunc(line.Members, s.order)
	switch i := slices.Index(line.Members, m); {
	case i < 0:
		return p, nil
	case i == 0:
		return backend.Place{First: true, Token: line.Token(m), Header: line.Header}, nil
	default:
		return backend.Place{Ahead: line.Members[i-1], Header: line.Header}, nil
	}
}

// cacheTime is how long a cached answer is believed.
const cacheTime = 5 * time.Second

type cachedTerm struct {
	election.Term
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newCachedTerm(t election.Term) *cachedTerm {
	c := &cachedTerm{Term: t}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	time.AfterFunc(cacheTime, c.look)
	return c
}

func (t *cachedTerm) look() {
	if err := t.Term.Check(); err != nil {
		t.cancel(err)
		return
	}
	time.AfterFunc(cacheTime, t.look)
}

func (t *cachedTerm) Context() context.Context { return t.ctx }
func (t *cachedTerm) Check() error             { return context.Cause(t.ctx) }

func (t *cachedTerm) Resign(ctx context.Context) error {
	t.cancel(elect.ErrResigned)
	return t.Term.Resign(ctx)
}

type timerAlone struct {
	*candidate
	more     time.Duration
	mu       sync.Mutex
	deadline time.Time
}

func (s *timerAlone) Done() <-chan struct{}           { return nil }
func (s *timerAlone) OnEnd(func(error)) (stop func()) { return func() {} }
func (s *timerAlone) Err() error                      { return nil }

// Deadline is what it was when the session was last seen to live.
func (s *timerAlone) Deadline() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Session.Err() == nil {
		s.deadline = s.Session.Deadline()
	}
	return s.deadline.Add(s.more)
}

func (s *timerAlone) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	if m == s.own {
		return unlessEnded(ctx, err)
	}
	return err
}

func (s *timerAlone) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	led := s.leads
	p, err := s.candidate.Ahead(ctx, m)
	if led {
		return p, unlessEnded(ctx, err)
	}
	return p, err
}

func (s *timerAlone) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Session.Watch(ctx, name, after)
	return r, unlessEnded(ctx, err)
}
