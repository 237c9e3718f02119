package broken

import (
	"context"
	"errors"
	"sync"

	"github.com/succession-dev/succession/backend"
)

var aheadFlaws = []Flaw{
	{
		Name:   "stale place",
		Breaks: "L2: the first Ahead after Gone answers from what was read before",
		Must:   "L2.after-gone L2.churn",
		May:    "G5",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &stalePlace{Session: s, places: make(map[backend.Member]backend.Place)}
		},
	},
	{
		Name:   "stale line",
		Breaks: "L2: every third Line is the one before the last",
		Must:   "L2.line",
		May:    "L1.end L7.header L7.foreign L8.kept Pin.header G6.cut G10 Fault",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &staleLine{Session: s, lines: make(map[string][]backend.Line)}
		},
	},
	{
		Name:    "zombie",
		Breaks:  "L2: a member that is not in line is taken for the first",
		Must:    "L2.left L2.removed Fault.leader-removed Fault.predecessor-removed Fault.dropped",
		May:     "G7.removed G7.dropped G8.waiter-removed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &zombie{s} },
	},
	{
		Name:    "behind the leader",
		Breaks:  "L2: everybody is told to wait for the first",
		Must:    "L2.order G5.one",
		May:     "L2.churn G5",
		session: func(_ *Backend, s backend.Session) backend.Session { return &behindLeader{s} },
	},
}

type stalePlace struct {
	backend.Session
	mu     sync.Mutex
	places map[backend.Member]backend.Place // what Ahead said last
	woken  bool
}

func (s *stalePlace) Gone(ctx context.Context, m backend.Member) error {
	err := s.Session.Gone(ctx, m)
	if err == nil {
		s.mu.Lock()
		s.woken = true
		s.mu.Unlock()
	}
	return err
}

func (s *stalePlace) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	s.mu.Lock()
	old, known := s.places[m]
	delete(s.places, m)
	known = known && s.woken && !old.First
	s.woken = false
	s.mu.Unlock()
	if known {
		return old, nil
	}
	p, err := s.Session.Ahead(ctx, m)
	if err == nil {
		s.mu.Lock()
		s.places[m] = p
		s.mu.Unlock()
	}
	return p, err
}

type staleLine struct {
	backend.Session
	mu    sync.Mutex
	lines map[string][]backend.Line // those since the last that was stale
}

func (s *staleLine) Line(ctx context.Context, line string) (backend.Line, error) {
	s.mu.Lock()
	seen := s.lines[line]
	if len(seen) == 2 {
		delete(s.lines, line)
	}
	s.mu.Unlock()
	if len(seen) == 2 {
		return seen[0], nil
	}
	l, err := s.Session.Line(ctx, line)
	if err == nil {
		s.mu.Lock()
		s.lines[line] = append(s.lines[line], l)
		s.mu.Unlock()
	}
	return l, err
}

type zombie struct{ backend.Session }

func (s *zombie) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if errors.Is(err, backend.ErrNotMember) {
		return backend.Place{First: true, Token: m.Position}, nil
	}
	return p, err
}

type behindLeader struct{ backend.Session }

func (s *behindLeader) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || p.First {
		return p, err
	}
	line, err := s.Session.Line(ctx, m.Line)
	if err != nil || len(line.Members) == 0 || line.Members[0] == m {
		return p, err
	}
	return backend.Place{Ahead: line.Members[0]}, nil
}
