package broken

import (
	"context"
	"slices"
	"sync"

	"github.com/succession-dev/succession/backend"
)

var queueFlaws = []Flaw{
	{
		Name:   "own shares",
		Breaks: "L2, L9: of the shared members Line shows those alone that the session has joined",
		Must:   "Queue.crash Barrier.opens Barrier.leave",
		May:    "L9 L10",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &ownShares{Session: s, own: make(map[uint64]bool)}
		},
	},
	{
		Name:    "removed before",
		Breaks:  "L10: Remove of an item that has gone is an error",
		Must:    "L10.remove L10.lost-answer Queue.lost-answer",
		session: func(_ *Backend, s backend.Session) backend.Session { return &removedBefore{s} },
	},
}

type ownShares struct {
	backend.Session
	mu  sync.Mutex
	own map[uint64]bool // by position
}

func (s *ownShares) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.JoinShared(ctx, line, value, record)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[m.Position] = true
	return m, err
}

func (s *ownShares) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.Members = slices.DeleteFunc(l.Members, func(m backend.Member) bool { return m.Shared && !s.own[m.Position] })
	return l, err
}

type removedBefore struct{ backend.Session }

func (s *removedBefore) Remove(ctx context.Context, m, by backend.Member) error {
	l, err := s.Line(ctx, m.Line)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(l.Members, func(o backend.Member) bool { return o.Key == m.Key }) {
		return backend.ErrNotMember
	}
	return s.Session.Remove(ctx, m, by)
}
