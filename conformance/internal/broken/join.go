package broken

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

var joinFlaws = []Flaw{
	{
		Name:    "join twice",
		Breaks:  "L1: after a lost answer it creates another member without looking for the first",
		Must:    "L1.lost-answer L1.cancelled-lost G6.lost-answer",
		May:     "G6.lost-resign",
		session: func(b *Backend, s backend.Session) backend.Session { return &joinTwice{s, b} },
	},
	{
		Name:    "orphan",
		Breaks:  "L1: a cancelled Join goes on in the background, and nobody owns its member",
		Must:    "L1.cancelled L1.cancelled-cut G6.cancelled G6.cut",
		May:     "G6.first G9.cut-context",
		session: func(_ *Backend, s backend.Session) backend.Session { return &orphan{s} },
	},
}

type joinTwice struct {
	backend.Session
	b *Backend
}

func (s *joinTwice) Join(ctx context.Context, line, value string) (backend.Member, error) {
	if s.b.takeLost() {
		if m, err := s.Session.Join(ctx, line, value); err != nil {
			return m, err
		}
	}
	return s.Session.Join(ctx, line, value)
}

type orphan struct{ backend.Session }

func (s *orphan) Join(ctx context.Context, line, value string) (backend.Member, error) {
	type outcome struct {
		m   backend.Member
		err error
	}
	if ctx.Err() != nil {
		return backend.Member{}, context.Cause(ctx)
	}
	result := make(chan outcome, 1)
	go func() {
		m, err := s.Session.Join(context.WithoutCancel(ctx), line, value)
		result <- outcome{m, err}
	}()
	select {
	case o := <-result:
		return o.m, o.err
	case <-ctx.Done():
		return backend.Member{}, context.Cause(ctx)
	}
}
