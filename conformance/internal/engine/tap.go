package engine

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// A tap is a session that notes in the timeline what is done through it.
type tap struct {
	backend.Session
	c *Client
}

// Untapped returns what the backend itself has returned.
func Untapped(s backend.Session) backend.Session { return s.(*tap).Session }

func (s *tap) begin(format string, args ...any) func(any) {
	return s.c.t.log.begin(s.c.Name, format, args...)
}

func (s *tap) Join(ctx context.Context, line, value string) (backend.Member, error) {
	done := s.begin("join %s", Short(line))
	m, err := s.Session.Join(ctx, line, value)
	done(either(Show(m), err))
	return m, err
}

func (s *tap) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	done := s.begin("ahead of %s", Show(m))
	p, err := s.Session.Ahead(ctx, m)
	done(either(ShowPlace(p), err))
	return p, err
}

func (s *tap) Gone(ctx context.Context, m backend.Member) error {
	done := s.begin("gone %s", Show(m))
	err := s.Session.Gone(ctx, m)
	done(result(err))
	return err
}

func (s *tap) Leave(ctx context.Context, m backend.Member) error {
	done := s.begin("leave %s", Show(m))
	err := s.Session.Leave(ctx, m)
	done(result(err))
	return err
}

func (s *tap) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	done := s.begin("pin %s at version %d", Show(m), at)
	err := s.Session.Pin(ctx, m, h, at)
	done(result(err))
	return err
}

func (s *tap) Line(ctx context.Context, line string) (backend.Line, error) {
	done := s.begin("line %s", Short(line))
	l, err := s.Session.Line(ctx, line)
	done(either(ShowLine(l.Members), err))
	return l, err
}

func (s *tap) Joined(ctx context.Context, line string) error {
	done := s.begin("joined %s", Short(line))
	err := s.Session.Joined(ctx, line)
	done(result(err))
	return err
}

func (s *tap) Get(ctx context.Context, name string) (backend.Record, error) {
	done := s.begin("get %s", Short(name))
	r, err := s.Session.Get(ctx, name)
	done(either(fmt.Sprintf("version %d", r.Version), err))
	return r, err
}

func (s *tap) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	done := s.begin("put %s%s", Short(name), showIf(cond))
	v, err := s.Session.Put(ctx, name, value, cond)
	done(either(fmt.Sprintf("version %d", v), err))
	return v, err
}

func (s *tap) Delete(ctx context.Context, name string, cond *backend.If) error {
	done := s.begin("delete %s%s", Short(name), showIf(cond))
	err := s.Session.Delete(ctx, name, cond)
	done(result(err))
	return err
}

func (s *tap) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	done := s.begin("watch %s after %d", Short(name), after)
	r, err := s.Session.Watch(ctx, name, after)
	done(either(fmt.Sprintf("version %d", r.Version), err))
	return r, err
}

func (s *tap) Close(ctx context.Context) error {
	done := s.begin("close session")
	err := s.Session.Close(ctx)
	done(result(err))
	return err
}

func result(err error) any {
	if err == nil {
		return "ok"
	}
	return err
}

func either(ok string, err error) any {
	if err == nil {
		return ok
	}
	return err
}
