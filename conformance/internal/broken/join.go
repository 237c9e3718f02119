package broken

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

var joinFlaws = []Flaw{
	{
		Name:    "join twice",
		Breaks:  "L1: after a lost answer it creates another member without looking for the first",
		Must:    "L1.lost-answer L1.cancelled-lost G6.lost-answer Group.assign-lost-answer Task.lost-answer Task.workers-lost-answer",
		May:     "G6.lost-resign",
		session: func(b *Backend, s backend.Session) backend.Session { return &joinTwice{s, b} },
	},
	{
		Name:    "orphan",
		Breaks:  "L1: a cancelled Join goes on in the background, and nobody owns its member",
		Must:    "L1.cancelled L1.cancelled-lost L1.cancelled-cut G6.cancelled G6.cut",
		May:     "G6.first G9.cut-context",
		session: func(_ *Backend, s backend.Session) backend.Session { return &orphan{s} },
	},
	{
		Name:    "straggler",
		Breaks:  "L1: what became of a Join that failed or had its answer lost is not asked; it is sent again half a TTL later",
		Must:    "L1.lost-answer L1.cancelled L1.cancelled-lost L1.cancelled-cut L1.session-lost",
		May:     "L5.fails L5.queue G6 G9.cut-context G9.ended-context",
		session: func(b *Backend, s backend.Session) backend.Session { return &straggler{s, b} },
	},
	{
		Name:    "late copy",
		Breaks:  "L1: of two copies of a request to join the second adds another member, however late it comes, and nobody looks for it",
		Must:    "L1.held L1.held-removed L1.held-closed L1.held-cancelled G6.held",
		May:     "L4.held",
		session: func(b *Backend, s backend.Session) backend.Session { return &lateCopy{s, b} },
	},
	{
		Name:    "found by value",
		Breaks:  "L1: after a lost answer the first member with the value is taken for the one that was created",
		Must:    "L1.lost-answer",
		May:     "L1.cancelled-lost",
		session: func(b *Backend, s backend.Session) backend.Session { return &foundByValue{s, b} },
	},
	{
		Name:    "looks before it joins",
		Breaks:  "L1: Join reads the line before it adds its member, and once more",
		Must:    "Lock.cost",
		session: func(_ *Backend, s backend.Session) backend.Session { return &looksBeforeItJoins{s} },
	},
	{
		Name:   "key of the session",
		Breaks: "L1: the key is that of the session, which has one place in a line however often it joins",
		Must:   "L1.end L1.concurrent L1.twice",
		May:    "L1 L2 L3.alone L4 L8 Pin Records.guard L3.line L3.line-past L10.remove L3.place L3.place-removed",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &keyOfSession{Session: s, places: make(map[string]backend.Member)}
		},
	},
	{
		Name:   "prefix",
		Breaks: "L1: lines whose names begin with the name of another are taken for a part of that one",
		Must:   "L1.apart",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &prefix{Session: s, joined: make(map[backend.Member]bool)}
		},
	},
}

type joinTwice struct {
	backend.Session
	b *Backend
}

func (s *joinTwice) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	if s.b.takeLost() {
		if m, err := s.Session.Join(ctx, line, value, record); err != nil {
			return m, err
		}
	}
	return s.Session.Join(ctx, line, value, record)
}

type orphan struct{ backend.Session }

func (s *orphan) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	type outcome struct {
		j   backend.Joined
		err error
	}
	if ctx.Err() != nil {
		return backend.Joined{}, context.Cause(ctx)
	}
	result := make(chan outcome, 1)
	go func() {
		j, err := s.Session.Join(context.WithoutCancel(ctx), line, value, record)
		result <- outcome{j, err}
	}()
	select {
	case o := <-result:
		return o.j, o.err
	case <-ctx.Done():
		return backend.Joined{}, context.Cause(ctx)
	}
}

type looksBeforeItJoins struct{ backend.Session }

func (s *looksBeforeItJoins) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	for range 2 {
		if _, err := s.Line(ctx, line); err != nil {
			return backend.Joined{}, err
		}
	}
	return s.Session.Join(ctx, line, value, record)
}

type straggler struct {
	backend.Session
	b *Backend
}

func (s *straggler) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	lost := s.b.takeLost()
	m, err := s.Session.Join(ctx, line, value, record)
	if lost || err != nil {
		time.AfterFunc(s.TTL()/2, func() {
			if now, err := s.b.Backend.Session(context.Background()); err == nil {
				_, _ = now.Join(context.Background(), line, value, record)
			}
		})
	}
	return m, err
}

type lateCopy struct {
	backend.Session
	b *Backend
}

func (s *lateCopy) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	s.b.holdsBack(func() {
		if now, err := s.b.Backend.Session(context.Background()); err == nil {
			_, _ = now.Join(context.Background(), line, value, record)
		}
	})
	return s.Session.Join(ctx, line, value, record)
}

type foundByValue struct {
	backend.Session
	b *Backend
}

func (s *foundByValue) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if !s.b.takeLost() || err != nil {
		return m, err
	}
	l, err := s.Line(ctx, line)
	for _, o := range l.Members {
		if o.Value == value {
			return backend.Joined{Member: o}, nil
		}
	}
	return m, err
}

type keyOfSession struct {
	backend.Session
	mu     sync.Mutex
	places map[string]backend.Member // by line
}

func (s *keyOfSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	s.mu.Lock()
	m, joined := s.places[line]
	s.mu.Unlock() // virtual time stands still while somebody waits for a mutex
	if joined && s.Err() == nil {
		if _, err := s.Ahead(ctx, m); err == nil {
			return backend.Joined{Member: m}, nil
		}
	}
	j, err := s.Session.Join(ctx, line, value, record)
	if err == nil {
		s.mu.Lock()
		s.places[line] = j.Member
		s.mu.Unlock()
	}
	return j, err
}

type prefix struct {
	backend.Session
	mu     sync.Mutex
	joined map[backend.Member]bool
}

func (s *prefix) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if err == nil {
		s.mu.Lock()
		s.joined[m.Member] = true
		s.mu.Unlock()
	}
	return m, err
}

func (s *prefix) Leave(ctx context.Context, m backend.Member) error {
	s.mu.Lock()
	delete(s.joined, m)
	s.mu.Unlock()
	return s.Session.Leave(ctx, m)
}

func (s *prefix) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || !p.First {
		return p, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for o := range s.joined {
		if o.Line != m.Line && strings.HasPrefix(o.Line, m.Line) && o.Position < m.Position {
			return backend.Place{Ahead: o, Header: p.Header}, nil
		}
	}
	return p, nil
}
