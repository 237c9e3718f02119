package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// A tap is a session that notes in the timeline what is done through it.
type tap struct {
	backend.Session
	c *client
}

// untapped returns what the backend itself has returned.
func untapped(s backend.Session) backend.Session { return s.(*tap).Session }

func (s *tap) begin(format string, args ...any) func(any) {
	return s.c.t.log.begin(s.c.name, format, args...)
}

func (s *tap) Join(ctx context.Context, line, value string) (backend.Member, error) {
	done := s.begin("join %s", short(line))
	m, err := s.Session.Join(ctx, line, value)
	done(either(show(m), err))
	return m, err
}

func (s *tap) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	done := s.begin("ahead of %s", show(m))
	p, err := s.Session.Ahead(ctx, m)
	done(either(showPlace(p), err))
	return p, err
}

func (s *tap) Gone(ctx context.Context, m backend.Member) error {
	done := s.begin("gone %s", show(m))
	err := s.Session.Gone(ctx, m)
	done(result(err))
	return err
}

func (s *tap) Leave(ctx context.Context, m backend.Member) error {
	done := s.begin("leave %s", show(m))
	err := s.Session.Leave(ctx, m)
	done(result(err))
	return err
}

func (s *tap) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	done := s.begin("pin %s at version %d", show(m), at)
	err := s.Session.Pin(ctx, m, h, at)
	done(result(err))
	return err
}

func (s *tap) Line(ctx context.Context, line string) (backend.Line, error) {
	done := s.begin("line %s", short(line))
	l, err := s.Session.Line(ctx, line)
	done(either(showLine(l.Members), err))
	return l, err
}

func (s *tap) Joined(ctx context.Context, line string) error {
	done := s.begin("joined %s", short(line))
	err := s.Session.Joined(ctx, line)
	done(result(err))
	return err
}

func (s *tap) Get(ctx context.Context, name string) (backend.Record, error) {
	done := s.begin("get %s", short(name))
	r, err := s.Session.Get(ctx, name)
	done(either(fmt.Sprintf("version %d", r.Version), err))
	return r, err
}

func (s *tap) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	done := s.begin("put %s%s", short(name), showIf(cond))
	v, err := s.Session.Put(ctx, name, value, cond)
	done(either(fmt.Sprintf("version %d", v), err))
	return v, err
}

func (s *tap) Delete(ctx context.Context, name string, cond *backend.If) error {
	done := s.begin("delete %s%s", short(name), showIf(cond))
	err := s.Session.Delete(ctx, name, cond)
	done(result(err))
	return err
}

func (s *tap) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	done := s.begin("watch %s after %d", short(name), after)
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

// short is the last segment of a name; all names of a trial begin alike.
func short(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func show(m backend.Member) string {
	s := fmt.Sprintf("%s(%d)", m.Key, m.Position)
	if m.Pinned {
		s += " pinned"
	}
	return s
}

func showPlace(p backend.Place) string {
	if p.First {
		return fmt.Sprintf("first, token %d", p.Token)
	}
	return "behind " + show(p.Ahead)
}

func showLine(ms []backend.Member) string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = show(m)
	}
	return "[" + strings.Join(out, " ") + "]"
}

func showIf(cond *backend.If) string {
	switch {
	case cond == nil || *cond == backend.If{}:
		return ""
	case cond.Member == backend.Member{}:
		return fmt.Sprintf(" if version %d", cond.Version)
	}
	return fmt.Sprintf(" if version %d and %s stands", cond.Version, show(cond.Member))
}

// same reports whether a and b are one member. A driver need not say the position
// of who stands ahead.
func same(a, b backend.Member) bool {
	return a.Line == b.Line && a.Key == b.Key && (a.Position == b.Position || a.Position == 0 || b.Position == 0)
}

// sameLine reports whether a line has exactly these members, with all that was
// said of them but whether they are pinned.
func sameLine(got, want []backend.Member) bool {
	if len(got) != len(want) {
		return false
	}
	for i, m := range got {
		m.Pinned = want[i].Pinned
		if m != want[i] {
			return false
		}
	}
	return true
}

// is reports whether err is one of the targets.
func is(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
