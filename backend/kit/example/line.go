package example

import (
	"context"
	"crypto/rand"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// about returns a request that names m.
func about(m backend.Member) request { return request{Line: m.Line, Key: m.Key, Position: m.Position} }

// members turns the server's entries into members.
func members(line string, entries []entry) []backend.Member {
	out := make([]backend.Member, len(entries))
	for i, e := range entries {
		out[i] = backend.Member{Line: line, Key: e.Key, Position: e.Position, Value: string(e.Value), Pinned: e.Session == ""}
	}
	return out
}

// Join chooses the member's key. The server creates a key at most once, so the request can be
// sent again after a lost answer. If Join fails, a request may still be on its way. So Join
// sends a leave for the key: after that the server does not create it any more.
func (s *session) Join(ctx context.Context, line, value, _ string) (backend.Joined, error) {
	key := rand.Text()
	a, err := s.do(ctx, repeat, "join", request{Line: line, Key: key, Value: []byte(value)})
	if err != nil {
		s.Go(func() { s.do(s.Context(), repeat, "leave", request{Line: line, Key: key}) })
		return backend.Joined{}, err
	}
	return backend.Joined{Member: members(line, a.Line)[0]}, nil
}

// Ahead needs one request. The answer has m, the member in front of it and the election's
// record, and it moves the deadline, as every answer does.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	a, err := s.do(ctx, repeat, "ahead", about(m))
	if err != nil {
		return backend.Place{}, err
	}
	return place(m.Line, a)
}

func place(line string, a answer) (backend.Place, error) {
	h, err := backend.ParseHeader(a.Value)
	if err != nil {
		return backend.Place{}, err
	}
	found := members(line, a.Line)
	if len(found) == 1 {
		return kit.PlaceOf(found[0], nil, h)
	}
	return kit.PlaceOf(found[1], &found[0], h)
}

// WatchPlace asks where m stands, and then has the server wait until that has changed.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	q := about(m)
	for how := repeat; ; how = wait {
		a, err := s.do(ctx, how, "ahead", q)
		if err != nil {
			return err
		}
		now, err := place(m.Line, a)
		if err != nil {
			return err
		}
		if now != *p {
			*p = now
			return nil
		}
		q.Place, q.RecordVersion = &a.Line[0].Position, a.Version
	}
}

func (s *session) Leave(ctx context.Context, m backend.Member) error {
	_, err := s.do(ctx, repeat, "leave", about(m))
	return err
}

func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	return s.line(ctx, line, repeat, request{Line: line})
}

// Head costs what Line costs here: the server has no request for it.
func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Line(ctx, line)
	l.Members = l.Members[:min(1, len(l.Members))]
	return l, err
}

func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	n := len(after.Members)
	q := request{Line: line, Members: &n}
	if n > 0 {
		q.Position = after.Members[n-1].Position
	}
	return s.line(ctx, line, wait, q)
}

func (s *session) line(ctx context.Context, line string, how mode, q request) (l backend.Line, err error) {
	a, err := s.do(ctx, how, "line", q)
	if err == nil {
		l.Members, l.Version = members(line, a.Line), backend.Version(a.Version)
		l.Header, err = backend.ParseHeader(a.Value)
	}
	return l, err
}

func (s *session) Gone(ctx context.Context, m backend.Member) error {
	_, err := s.do(ctx, wait, "gone", about(m))
	return err
}

// Pin can be repeated, because the server notices if it was done before, also if another client has written the header since.
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	q := about(m)
	q.Name, q.Value, q.RecordVersion, q.Once = m.Line, h.Encode(), int64(at), rand.Text()
	_, err := s.do(ctx, repeat, "pin", q)
	return err
}
