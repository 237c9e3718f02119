package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

var leaveFlaws = []Flaw{
	{
		Name:    "late leave",
		Breaks:  "L4: a request to leave that comes late takes out who then stands in the place of who left",
		Must:    "L4.held",
		session: func(b *Backend, s backend.Session) backend.Session { return &lateLeave{s, b} },
	},
	{
		Name:    "stay in line",
		Breaks:  "L4: a member that is not first stays when it leaves",
		Must:    "Lock.try Lock.all",
		May:     "L1 L2 L3 L4 L5 L8 L9 Pin Records G2 G4 G5 G6 G8 G9 G10 Run Fault L10",
		session: func(_ *Backend, s backend.Session) backend.Session { return &stayInLine{s} },
	},
	{
		Name:    "leave by key",
		Breaks:  "L4: Leave deletes whoever stands under the key",
		Must:    "L4.foreign L4.same-key L4.dropped",
		May:     "G5.bytes",
		session: func(b *Backend, s backend.Session) backend.Session { return &leaveByKey{s, b} },
	},
	{
		Name:    "late repeat",
		Breaks:  "L4: a late connection repeats each Leave half a TTL later, by the key alone",
		Must:    "L4.foreign L4.same-key L4.dropped",
		session: func(b *Backend, s backend.Session) backend.Session { return &lateRepeat{s, b} },
	},
	{
		Name:    "not there",
		Breaks:  "L4: Leave of a member that has gone is an error",
		Must:    "L4.again L4.removed L4.lost-answer",
		May:     "G5.bytes",
		session: func(b *Backend, s backend.Session) backend.Session { return &notThere{leaving{s, b}} },
	},
	{
		Name:   "revoke",
		Breaks: "L4: Leave takes out all that the session has in the line",
		Must:   "L1.twice L4.again L4.middle",
		May:    "L3.alone L4 L8.kept Pin.sealed Records.guard L3.line-past L10.remove L3.line L3.place",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &revoke{Session: s, joined: make(map[string][]backend.Member)}
		},
	},
	{
		Name:    "restore",
		Breaks:  "L4: a connection that breaks while a member leaves restores it, as the session's own",
		Must:    "L4.lost-answer",
		session: func(b *Backend, s backend.Session) backend.Session { return &restore{leaving{s, b}} },
	},
	{
		Name:    "gone with the session",
		Breaks:  "L4: Leave under a session that has ended returns nil, though the member may still stand",
		Must:    "L4.ended L5.fails",
		May:     "L5.close",
		session: func(_ *Backend, s backend.Session) backend.Session { return &goneWithSession{s} },
	},
}

type leaveByKey struct {
	backend.Session
	b *Backend
}

func (s *leaveByKey) Leave(ctx context.Context, m backend.Member) error {
	there, err := stands(ctx, s.Session, m)
	if there {
		s.b.Remove(m)
		return nil
	}
	if errors.Is(err, backend.ErrHeader) {
		return s.Session.Leave(ctx, m)
	}
	return err
}

type lateRepeat struct {
	backend.Session
	b *Backend
}

func (s *lateRepeat) Leave(ctx context.Context, m backend.Member) error {
	err := s.Session.Leave(ctx, m)
	time.AfterFunc(s.TTL()/2, func() { s.b.Remove(m) })
	return err
}

// leaving is for flaws of Leave alone: if the answer to a Join is lost, that does no harm.
type leaving struct {
	backend.Session
	b *Backend
}

func (s *leaving) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	s.b.takeLost()
	return s.Session.Join(ctx, line, value, record)
}

type notThere struct{ leaving }

func (s *notThere) Leave(ctx context.Context, m backend.Member) error {
	there, err := stands(ctx, s.Session, m)
	if err == nil && !there {
		return backend.ErrNotMember
	}
	lost := s.b.takeLost()
	err = s.Session.Leave(ctx, m)
	if err == nil && lost { // it is sent again
		return backend.ErrNotMember
	}
	return err
}

type revoke struct {
	backend.Session
	mu     sync.Mutex
	joined map[string][]backend.Member // by line
}

func (s *revoke) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if err == nil {
		s.mu.Lock()
		s.joined[line] = append(s.joined[line], m.Member)
		s.mu.Unlock()
	}
	return m, err
}

func (s *revoke) Leave(ctx context.Context, m backend.Member) error {
	s.mu.Lock()
	all := s.joined[m.Line]
	delete(s.joined, m.Line)
	s.mu.Unlock()
	for _, o := range all {
		if err := s.Session.Leave(ctx, o); err != nil {
			return err
		}
	}
	return s.Session.Leave(ctx, m)
}

type restore struct{ leaving }

func (s *restore) Leave(ctx context.Context, m backend.Member) error {
	err := s.Session.Leave(ctx, m)
	if s.b.takeLost() {
		time.AfterFunc(s.TTL()/2, func() { _, _ = s.Session.Join(context.Background(), m.Line, m.Value, "") })
	}
	return err
}

type goneWithSession struct{ backend.Session }

func (s *goneWithSession) Leave(ctx context.Context, m backend.Member) error {
	err := s.Session.Leave(ctx, m)
	if errors.Is(err, backend.ErrSessionEnded) {
		return nil
	}
	return err
}

type stayInLine struct{ backend.Session }

func (s *stayInLine) Leave(ctx context.Context, m backend.Member) error {
	if p, err := s.Ahead(ctx, m); err == nil && !p.First {
		return nil
	}
	return s.Session.Leave(ctx, m)
}

type lateLeave struct {
	backend.Session
	b *Backend
}

func (s *lateLeave) Leave(ctx context.Context, m backend.Member) error {
	s.b.holdsBack(func() {
		l, err := s.Session.Line(context.Background(), m.Line)
		if err == nil && len(l.Members) > 0 {
			_ = s.Session.Leave(context.Background(), l.Members[0])
		}
	})
	return s.Session.Leave(ctx, m)
}
