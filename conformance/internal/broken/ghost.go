package broken

import (
	"context"
	"time"

	"github.com/succession-dev/succession/backend"
)

var ghostFlaws = []Flaw{
	{
		Name:     "stays in line",
		Breaks:   "G6: a campaign that is cancelled does not leave the line",
		Must:     "G4.middle G6.cancelled G6.first G6.cut G6.later Run.cancelled",
		May:      "G9.campaigns G10.churn Fault",
		election: candidates(func(c *candidate) backend.Session { return &staysInLine{c} }),
	},
	{
		Name:     "closes to leave",
		Breaks:   "G6: a candidate that could not leave in time ends the session, and with it the terms of others",
		Must:     "G6.later",
		election: candidates(func(c *candidate) backend.Session { return &closesToLeave{c} }),
	},
	{
		Name:    "late orphan",
		Breaks:  "L1, G6: a Join that is cancelled is tried once more, when nobody looks any more",
		Must:    "G6.cancelled G6.first G6.cut G9.ended-context G9.cut-context",
		May:     "L1",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lateOrphan{s} },
	},
	{
		Name:    "registers again",
		Breaks:  "G6: a session that has lost the answer to Leave restores its member",
		Must:    "L4.lost-answer G6.lost-resign",
		session: func(b *Backend, s backend.Session) backend.Session { return &registersAgain{s, b} },
	},
}

type staysInLine struct{ *candidate }

func (s *staysInLine) Leave(ctx context.Context, m backend.Member) error {
	if s.campaign.Err() != nil && !s.leads {
		return nil
	}
	return s.Session.Leave(ctx, m)
}

type closesToLeave struct{ *candidate }

func (s *closesToLeave) Leave(ctx context.Context, m backend.Member) error {
	err := s.Session.Leave(ctx, m)
	if err != nil && ctx.Err() != nil {
		_ = s.Session.Close(ctx)
	}
	return err
}

type lateOrphan struct{ backend.Session }

func (s *lateOrphan) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if err != nil && ctx.Err() != nil {
		time.AfterFunc(s.TTL()/2, func() { _, _ = s.Session.Join(context.WithoutCancel(ctx), line, value, record) })
	}
	return m, err
}

type registersAgain struct {
	backend.Session
	b *Backend
}

func (s *registersAgain) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	s.b.takeLost() // the session below does not lose the answer
	return s.Session.Join(ctx, line, value, record)
}

func (s *registersAgain) Leave(ctx context.Context, m backend.Member) error {
	err := s.Session.Leave(ctx, m)
	if err == nil && s.b.takeLost() {
		_, err = s.Session.Join(ctx, m.Line, m.Value, "")
	}
	return err
}
