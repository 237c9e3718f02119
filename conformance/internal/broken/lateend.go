package broken

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A lateEnd is a session whose client believes that it lives until ended is closed.
type lateEnd struct {
	backend.Session
	late  *kit.Ender
	ended chan struct{}
}

// endsLate returns a session that its client believes alive until wait returns.
func endsLate(s backend.Session, wait func()) *lateEnd {
	l := &lateEnd{Session: s, late: new(kit.Ender), ended: make(chan struct{})}
	go func() {
		wait()
		close(l.ended)
		l.late.TellEnd(l.Err())
	}()
	return l
}

func (s *lateEnd) OnEnd(f func(error)) (stop func()) { return s.late.OnEnd(f) }

func (s *lateEnd) Done() <-chan struct{} { return s.ended }

func (s *lateEnd) Err() error {
	select {
	case <-s.ended:
		return cmp.Or(s.Session.Err(), backend.ErrSessionEnded)
	default:
		return nil
	}
}

func (s *lateEnd) Deadline() time.Time {
	end := s.Session.Deadline()
	switch {
	case s.Err() != nil:
		return end
	case s.Session.Err() != nil:
		return time.Now().Add(s.TTL())
	}
	return end
}

func (s *lateEnd) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	return p, s.learnt(ctx, err)
}

func (s *lateEnd) Gone(ctx context.Context, m backend.Member) error {
	return s.learnt(ctx, s.Session.Gone(ctx, m))
}

func (s *lateEnd) Leave(ctx context.Context, m backend.Member) error {
	if err := s.Err(); err != nil {
		return err
	}
	return s.Session.Leave(ctx, m)
}

func (s *lateEnd) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	r, err := s.Session.Watch(ctx, name, after)
	return r, s.learnt(ctx, err)
}

// learnt returns err. If err is the end of the session, it returns it only when the client learns
// of it.
func (s *lateEnd) learnt(ctx context.Context, err error) error {
	if errors.Is(err, backend.ErrSessionEnded) {
		select {
		case <-s.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}
