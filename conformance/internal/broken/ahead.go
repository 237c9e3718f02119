package broken

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

var aheadFlaws = []Flaw{
	{
		Name:   "stale place",
		Breaks: "L2: the first Ahead after Gone answers from what was read before",
		Must:   "L2.after-gone L2.churn",
		May:    "G5 L9",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &stalePlace{Session: s, places: make(map[backend.Member]backend.Place)}
		},
	},
	{
		Name:    "place without a fence",
		Breaks:  "L2: Join tells a place with the token that the member would have without a header",
		Must:    "L2.join-place",
		session: func(_ *Backend, s backend.Session) backend.Session { return &placeWithoutFence{s} },
		places:  true,
	},
	{
		Name:    "no such record",
		Breaks:  "L2: Join tells that there is no record, without having asked",
		Must:    "L2.join-place G2.fence-drop",
		session: func(_ *Backend, s backend.Session) backend.Session { return &noSuchRecord{s} },
		places:  true,
	},
	{
		Name:   "stale line",
		Breaks: "L2: every third Line is the one before the last",
		Must:   "L2.line",
		May:    "L1.end L1.cancelled-lost L7 L8.kept Pin.header Pin.lost-written Records.fresh L10 G6.cut G10 Fault",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &staleLine{Session: s, lines: make(map[string][]backend.Line)}
		},
	},
	{
		Name:    "zombie",
		Breaks:  "L2: a member that is not in line is taken for the first",
		Must:    "L2.left L2.removed Fault.leader-removed Fault.predecessor-removed Fault.dropped",
		May:     "G7.removed G7.dropped G8.waiter-removed L3.place-removed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &zombie{s} },
	},
	{
		Name:    "behind the leader",
		Breaks:  "L2: everybody is told to wait for the first",
		Must:    "L2.order G5.one",
		May:     "L2.churn G5 L9 L3.place L3.place-removed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &behindLeader{s} },
	},
	{
		Name:   "old list",
		Breaks: "L2: the first Ahead after Join answers from what was read before it",
		Must:   "L2.after-join L2.churn",
		May:    "L2.after-gone L7.fence L3.place-fence G5.cost G5.bytes",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &oldList{Session: s, front: make(map[string]backend.Member)}
		},
	},
	{
		Name:    "text order",
		Breaks:  "L2: Line is in the order of keys as text without leading zeros, 10 before 9",
		Must:    "L1.concurrent Queue.order",
		May:     "G5.observer L8.intact",
		session: func(_ *Backend, s backend.Session) backend.Session { return &textOrder{s} },
	},
	{
		Name:    "each member",
		Breaks:  "L2: Ahead reads every member of the line",
		Must:    "L2.cost G5.cost",
		May:     "G5.bytes",
		session: func(_ *Backend, s backend.Session) backend.Session { return &eachMember{s} },
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
	lines map[string][]backend.Line // the lines since the last stale one
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
	p.Ahead = line.Members[0]
	return p, nil
}

type placeWithoutFence struct{ backend.Session }

func (s *placeWithoutFence) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Session.Join(ctx, line, value, record)
	if j.Place != nil && j.Place.First {
		j.Place.Token = j.Member.Position
	}
	return j, err
}

type noSuchRecord struct{ backend.Session }

func (s *noSuchRecord) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Session.Join(ctx, line, value, record)
	if err == nil && record != "" {
		j.Record = &backend.Record{Name: record, Version: backend.Absent}
	}
	return j, err
}

type oldList struct {
	backend.Session
	mu     sync.Mutex
	front  map[string]backend.Member // the member in front when the line was last read
	joined bool
}

func (s *oldList) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = true
	return m, err
}

func (s *oldList) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || p.First {
		return p, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.front[m.Line]
	s.front[m.Line] = p.Ahead
	if known && s.joined {
		p.Ahead = old
	}
	s.joined = false
	return p, nil
}

type textOrder struct{ backend.Session }

func (s *textOrder) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	number := func(m backend.Member) string { return strings.TrimLeft(m.Key, "n_0") }
	slices.SortFunc(l.Members, func(a, b backend.Member) int { return strings.Compare(number(a), number(b)) })
	return l, err
}

func (s *textOrder) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	c, err := s.Line(ctx, claims)
	if err != nil {
		return backend.Member{}, err
	}
	l, err := s.Line(ctx, items)
	if err != nil {
		return backend.Member{}, err
	}
	m, free, err := kit.FirstFree(l.Members, c.Members)
	if err == nil && !free {
		err = backend.ErrTaken
	}
	return m, err
}

type eachMember struct{ backend.Session }

func (s *eachMember) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	line, err := s.Line(ctx, m.Line)
	for _, o := range line.Members {
		if err == nil {
			_, err = s.Get(ctx, o.Line+"/"+o.Key)
		}
	}
	if err != nil {
		return backend.Place{}, err
	}
	return s.Session.Ahead(ctx, m)
}
