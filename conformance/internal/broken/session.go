package broken

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
)

var sessionFlaws = []Flaw{
	{
		Name:    "next session",
		Breaks:  "L5: a Join whose session has ended is done under the next one",
		Must:    "L5.fails L5.queue",
		May:     "L1.session-lost L5.close",
		session: func(b *Backend, s backend.Session) backend.Session { return &nextSession{s, b} },
	},
	{
		Name:    "silent end",
		Breaks:  "L5: Done is not closed when the session ends",
		Must:    "L5.done L5.close G9.members",
		May:     "L4.ended L5 Pin.closed Pin.expired G9",
		session: func(_ *Backend, s backend.Session) backend.Session { return &silentEnd{s} },
	},
}

type nextSession struct {
	backend.Session
	b *Backend
}

func (s *nextSession) Join(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.Session.Join(ctx, line, value)
	if !errors.Is(err, backend.ErrSessionEnded) {
		return m, err
	}
	next, err := s.b.Backend.Session(ctx)
	if err != nil {
		return m, err
	}
	return next.Join(ctx, line, value)
}

type silentEnd struct{ backend.Session }

func (s *silentEnd) Done() <-chan struct{} { return nil }
