package engine

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// A tap is a session that notes in the timeline each call that goes through it.
type tap struct {
	backend.Session
	c *Client
}

func (s *tap) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	done := s.begin("watch place of %s, after: %s", Show(m), ShowPlace(*p))
	err := s.Session.WatchPlace(ctx, m, p)
	_, err = noted(done, ShowPlace)(*p, err)
	return err
}

// tapped returns s with a tap.
func (c *Client) tapped(s backend.Session) backend.Session { return &tap{Session: s, c: c} }

// Untapped returns the session that the backend itself has returned.
func Untapped(s backend.Session) backend.Session { return s.(*tap).Session }

// begin notes that a call begins. In the methods below it runs before the call, since Go
// evaluates from left to right.
func (s *tap) begin(format string, args ...any) func(any) {
	return s.c.t.log.begin(s.c.Name, format, args...)
}

// noted returns a func that notes the result of a call and returns it.
func noted[T any](done func(any), show func(T) string) func(v T, err error) (T, error) {
	return func(v T, err error) (T, error) {
		if err != nil {
			done(err)
		} else {
			done(show(v))
		}
		return v, err
	}
}

// failed is noted, for a call that returns an error alone.
func failed(done func(any)) func(error) error {
	return func(err error) error {
		done(result(err))
		return err
	}
}

func (s *tap) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return noted(s.begin("join %s", Short(line)), showJoined)(s.Session.Join(ctx, line, value, record))
}

func (s *tap) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return noted(s.begin("join %s, shared", Short(line)), showJoined)(s.Session.JoinShared(ctx, line, value, record))
}

func (s *tap) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	return noted(s.begin("ahead of %s", Show(m)), ShowPlace)(s.Session.Ahead(ctx, m))
}

func (s *tap) Gone(ctx context.Context, m backend.Member) error {
	return failed(s.begin("gone %s", Show(m)))(s.Session.Gone(ctx, m))
}

func (s *tap) Leave(ctx context.Context, m backend.Member) error {
	return failed(s.begin("leave %s", Show(m)))(s.Session.Leave(ctx, m))
}

func (s *tap) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	return failed(s.begin("pin %s at version %d", Show(m), at))(s.Session.Pin(ctx, m, h, at))
}

func (s *tap) Line(ctx context.Context, line string) (backend.Line, error) {
	show := func(l backend.Line) string { return ShowLine(l.Members) }
	return noted(s.begin("line %s", Short(line)), show)(s.Session.Line(ctx, line))
}

func (s *tap) Head(ctx context.Context, line string) (backend.Line, error) {
	show := func(l backend.Line) string { return ShowLine(l.Members) }
	return noted(s.begin("head of %s", Short(line)), show)(s.Session.Head(ctx, line))
}

func (s *tap) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	show := func(l backend.Line) string { return ShowLine(l.Members) }
	return noted(s.begin("watch line %s after %s", Short(line), ShowLine(after.Members)), show)(s.Session.WatchLine(ctx, line, after))
}

func (s *tap) Append(ctx context.Context, line, value string) (backend.Member, error) {
	return noted(s.begin("append to %s", Short(line)), Show)(s.Session.Append(ctx, line, value))
}

func (s *tap) Remove(ctx context.Context, m, by backend.Member) error {
	return failed(s.begin("remove %s by %s", Show(m), Show(by)))(s.Session.Remove(ctx, m, by))
}

func (s *tap) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	return noted(s.begin("the first of %s that none of %s claims", Short(items), Short(claims)), Show)(s.Session.Free(ctx, items, claims))
}

func (s *tap) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	return noted(s.begin("join %s, to claim %s", Short(line), Show(item)), showJoined)(s.Session.Claim(ctx, line, value, record, item))
}

func (s *tap) Refresh(ctx context.Context) error {
	return failed(s.begin("refresh"))(s.Session.Refresh(ctx))
}

func (s *tap) Get(ctx context.Context, name string) (backend.Record, error) {
	return noted(s.begin("get %s", Short(name)), showRecord)(s.Session.Get(ctx, name))
}

func (s *tap) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	return noted(s.begin("put %s%s", Short(name), showIf(cond)), showVersion)(s.Session.Put(ctx, name, value, cond))
}

func (s *tap) Delete(ctx context.Context, name string, cond *backend.If) error {
	return failed(s.begin("delete %s%s", Short(name), showIf(cond)))(s.Session.Delete(ctx, name, cond))
}

func (s *tap) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	return noted(s.begin("watch %s after %d", Short(name), after), showRecord)(s.Session.Watch(ctx, name, after))
}

func (s *tap) Close(ctx context.Context) error {
	return failed(s.begin("close session"))(s.Session.Close(ctx))
}

func showJoined(j backend.Joined) string {
	if j.Place == nil {
		return Show(j.Member)
	}
	return Show(j.Member) + ", " + ShowPlace(*j.Place)
}

func showVersion(v backend.Version) string { return fmt.Sprintf("version %d", v) }
func showRecord(r backend.Record) string   { return showVersion(r.Version) }

func result(err error) any {
	if err == nil {
		return "ok"
	}
	return err
}
