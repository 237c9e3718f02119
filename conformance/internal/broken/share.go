package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

var shareFlaws = []Flaw{
	{
		Name:    "one of many",
		Breaks:  "L9: a shared member waits for whoever stands just in front",
		Must:    "L9.together L9.passes L9.woken Lock.woken Lock.slots Barrier.opens Barrier.woken",
		May:     "L9",
		session: func(_ *Backend, s backend.Session) backend.Session { return &oneOfMany{s} },
	},
	{
		Name:    "shared unseen",
		Breaks:  "L9: Line does not say who is shared",
		Must:    "L9.together Group.members",
		May:     "L9.lost-answer L10",
		session: func(_ *Backend, s backend.Session) backend.Session { return &sharedUnseen{s} },
	},
	{
		Name:    "pass the readers",
		Breaks:  "L9: a member that is not shared passes over those that are",
		Must:    "L9.together L9.passes L9.cut L9.ends Lock.together Lock.cut",
		May:     "G5.bytes",
		session: func(_ *Backend, s backend.Session) backend.Session { return &passReaders{s} },
	},
	{
		Name:    "pass the writer",
		Breaks:  "L9: a shared member is first whoever stands in front",
		Must:    "L9.passes L9.sealed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &passWriter{s} },
	},
	{
		Name:    "pass the seal together",
		Breaks:  "L9: a seal is for members that are not shared",
		Must:    "L9.sealed",
		May:     "L3.place-late-gate",
		session: func(_ *Backend, s backend.Session) backend.Session { return &sharePastSeal{s} },
	},
	{
		Name:    "first alone",
		Breaks:  "L9, L6: the deadline is kept ahead for members that are not shared",
		Must:    "L9.deadline",
		May:     "L9.cut",
		session: func(_ *Backend, s backend.Session) backend.Session { return &firstAlone{sharing: sharing{Session: s}} },
	},
	{
		Name:    "lenient together",
		Breaks:  "L9, L6: the deadline of a shared member is half a TTL late",
		Must:    "L9.cut",
		May:     "L9.deadline",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lenientTogether{sharing{Session: s}} },
	},
	{
		Name:    "share twice",
		Breaks:  "L9, L1: after a lost answer another shared member is created",
		Must:    "L9.lost-answer Lock.lost-answer Barrier.lost-answer Group.lost-answer Barrier.leave-lost-answer Lock.slots-lost-answer Task.workers-lost-answer",
		session: func(b *Backend, s backend.Session) backend.Session { return &shareTwice{s, b} },
	},
	{
		Name:    "share for ever",
		Breaks:  "L9: a shared member stays when its session ends",
		Must:    "L9.ends Queue.crash Queue.churn Group.crash Group.assign Barrier.crash Barrier.died Barrier.cut Barrier.expired Barrier.leave-expired Barrier.leave-cut",
		May:     "L9.cut L9.sealed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &shareForEver{s} },
	},
}

type oneOfMany struct{ backend.Session }

func (s *oneOfMany) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.Join(ctx, line, value, record)
}

type sharedUnseen struct{ backend.Session }

func (s *sharedUnseen) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	for i := range l.Members {
		l.Members[i].Shared = false
	}
	return l, err
}

type passReaders struct{ backend.Session }

func (s *passReaders) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || m.Shared {
		return p, err
	}
	l, err := s.Line(ctx, m.Line)
	if err != nil {
		return p, err
	}
	p.First, p.Token = true, l.Token(m)
	for _, o := range l.Members {
		if o.Position < m.Position && !o.Shared {
			p.First, p.Token, p.Ahead = false, 0, o
		}
	}
	return p, nil
}

type passWriter struct{ backend.Session }

func (s *passWriter) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err == nil && m.Shared {
		p.First, p.Token = true, p.Header.Fence+m.Position
	}
	return p, err
}

type sharePastSeal struct{ backend.Session }

func (s *sharePastSeal) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if m.Shared && errors.Is(err, backend.ErrSealed) {
		return backend.Place{First: true, Token: m.Position}, nil
	}
	return p, err
}

// sharing notes whether the session has joined as a shared member.
type sharing struct {
	backend.Session
	mu     sync.Mutex
	shares time.Time // when it joined as a shared member; zero if it has not
}

func (s *sharing) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.JoinShared(ctx, line, value, record)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shares = time.Now()
	return m, err
}

// since returns when the session joined as a shared member, and whether it has.
func (s *sharing) since() (joined time.Time, shares bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shares, !s.shares.IsZero()
}

type firstAlone struct{ sharing }

func (s *firstAlone) Deadline() time.Time {
	d := s.Session.Deadline()
	if joined, shares := s.since(); shares && joined.Add(s.TTL()).Before(d) {
		return joined.Add(s.TTL())
	}
	return d
}

type lenientTogether struct{ sharing }

func (s *lenientTogether) Deadline() time.Time {
	d := s.Session.Deadline()
	if _, shares := s.since(); shares {
		return d.Add(s.TTL() / 2)
	}
	return d
}

type shareTwice struct {
	backend.Session
	b *Backend
}

func (s *shareTwice) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	if s.b.takeLost() {
		if m, err := s.Session.JoinShared(ctx, line, value, record); err != nil {
			return m, err
		}
	}
	return s.Session.JoinShared(ctx, line, value, record)
}

type shareForEver struct{ backend.Session }

func (s *shareForEver) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.pinned(ctx)(s.Session.JoinShared(ctx, line, value, record))
}

func (s *shareForEver) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	return s.pinned(ctx)(s.Session.Claim(ctx, line, value, record, item))
}

func (s *shareForEver) pinned(ctx context.Context) func(backend.Joined, error) (backend.Joined, error) {
	return func(m backend.Joined, err error) (backend.Joined, error) {
		if err != nil {
			return m, err
		}
		l, err := s.Line(ctx, m.Line)
		if err != nil {
			return m, err
		}
		return m, s.Pin(ctx, m.Member, l.Header, l.Version)
	}
}
