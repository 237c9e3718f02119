package broken

import (
	"context"
	"errors"
	"time"

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
		May:     "L4.ended L5 Pin.closed Pin.expired G9 L10.ended L7.fence-expired",
		session: func(_ *Backend, s backend.Session) backend.Session { return &silentEnd{s} },
	},
	{
		Name:   "check, then open",
		Breaks: "L5: each caller who finds no session opens one, beside those of the others",
		Must:   "L5.same",
		opens:  checkThenOpen,
	},
	{
		Name:    "try again later",
		Breaks:  "L5: a Join whose session has ended fails, and is tried again under the next one",
		Must:    "L5.fails L5.queue",
		May:     "L1.session-lost",
		session: func(b *Backend, s backend.Session) backend.Session { return &tryAgainLater{s, b} },
	},
	{
		Name:    "blocked",
		Breaks:  "L5: what waits when the session ends goes on waiting",
		Must:    "L5.blocked G9.blocked",
		May:     "Fault",
		session: func(_ *Backend, s backend.Session) backend.Session { return &blocked{s} },
	},
	{
		Name:    "close by client",
		Breaks:  "L5: Close of an ended session ends the one that the client has now",
		Must:    "L5.next",
		session: func(b *Backend, s backend.Session) backend.Session { return &closeByClient{s, b} },
	},
}

type nextSession struct {
	backend.Session
	b *Backend
}

func (s *nextSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if !errors.Is(err, backend.ErrSessionEnded) {
		return m, err
	}
	next, err := s.b.Backend.Session(ctx)
	if err != nil {
		return m, err
	}
	return next.Join(ctx, line, value, record)
}

type silentEnd struct{ backend.Session }

func (s *silentEnd) Done() <-chan struct{}           { return nil }
func (s *silentEnd) OnEnd(func(error)) (stop func()) { return func() {} }

// A beside is a session that was opened beside another.
type beside struct{ backend.Session }

func checkThenOpen(ctx context.Context, b *Backend) (backend.Session, error) {
	b.mu.Lock()
	second := b.opening && (b.newest == nil || b.newest.Err() != nil)
	b.opening = true
	b.mu.Unlock()
	s, err := b.Backend.Session(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opening, b.newest = false, s
	if second && err == nil {
		return beside{s}, nil
	}
	return s, err
}

type tryAgainLater struct {
	backend.Session
	b *Backend
}

func (s *tryAgainLater) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if errors.Is(err, backend.ErrSessionEnded) {
		time.AfterFunc(s.TTL()/10, func() {
			ctx := context.WithoutCancel(ctx)
			if next, err := s.b.Backend.Session(ctx); err == nil {
				_, _ = next.Join(ctx, line, value, record)
			}
		})
	}
	return m, err
}

type blocked struct{ backend.Session }

func (s *blocked) Gone(ctx context.Context, m backend.Member) error {
	if err := s.Err(); err != nil {
		return err
	}
	return unlessEnded(ctx, s.Session.Gone(ctx, m))
}

func (s *blocked) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	if err := s.Err(); err != nil {
		return backend.Line{}, err
	}
	l, err := s.Session.WatchLine(ctx, line, after)
	return l, unlessEnded(ctx, err)
}

func (s *blocked) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	if err := s.Err(); err != nil {
		return backend.Record{}, err
	}
	r, err := s.Session.Watch(ctx, name, after)
	return r, unlessEnded(ctx, err)
}

type closeByClient struct {
	backend.Session
	b *Backend
}

func (s *closeByClient) Close(ctx context.Context) error {
	if s.Err() == nil {
		return s.Session.Close(ctx)
	}
	now, err := s.b.Backend.Session(ctx)
	if err != nil {
		return err
	}
	return now.Close(ctx)
}
