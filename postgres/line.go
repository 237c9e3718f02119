package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Line returns the whole line in order; see [backend.Session].
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	return s.line(ctx, line, math.MaxInt32, s.repeat)
}

// Head returns the line with its first member alone; see [backend.Session].
func (s *session) Head(ctx context.Context, line string) (backend.Line, error) {
	return s.line(ctx, line, 1, s.repeat)
}

// line reads the first members of a line, and the header.
func (s *session) line(ctx context.Context, line string, most int, send func(context.Context, string, ...any) (answer, error)) (l backend.Line, err error) {
	a, err := send(ctx, "line", line, most)
	if err != nil {
		return l, err
	}
	r := a.first()
	header := r.bytes()
	l.Version = r.version()
	if err := r.err(); err != nil {
		return l, err
	}
	s.b.saw(int64(l.Version))
	for i := range a.rows[1:] {
		r := &a.rows[i+1]
		r.text()
		r.bytes()
		r.version()
		l.Members = append(l.Members, r.member(line))
		if err := r.err(); err != nil {
			return backend.Line{}, err
		}
	}
	l.Header, err = backend.ParseHeader(header)
	return l, err
}

// Lines returns the names of the lines in which somebody stands; see [backend.Session].
func (s *session) Lines(ctx context.Context) (map[string]int, error) {
	a, err := s.repeat(ctx, "lines")
	if err != nil {
		return nil, err
	}
	lines := make(map[string]int)
	for i := range a.rows[1:] {
		r := &a.rows[i+1]
		r.text()
		name, n := r.text(), r.int()
		if err := r.err(); err != nil {
			return nil, err
		}
		if backend.CheckName(name) == nil {
			lines[name] = int(n)
		}
	}
	return lines, nil
}

// Survey returns what is at each name; see [backend.Session].
func (s *session) Survey(ctx context.Context) (map[string]backend.Standing, error) {
	a, err := s.repeat(ctx, "survey")
	if err != nil {
		return nil, err
	}
	all := make(map[string]backend.Standing)
	for i := range a.rows[1:] {
		r := &a.rows[i+1]
		r.text()
		name := r.text()
		st := backend.Standing{Stand: int(r.int())}
		first := r.member(name)
		st.Record = backend.Record{Name: name, Value: r.bytes(), Version: r.version()}
		if err := r.err(); err != nil {
			return nil, err
		}
		if st.Stand > 0 {
			st.First = first
		}
		if backend.CheckName(name) == nil {
			all[name] = st
		}
	}
	return all, nil
}

// Imported returns the members that somebody has written into the table by hand; see
// [backend.Session]. A gate, a seal and an item were joined or appended once, and their rows
// tell.
func (s *session) Imported(ctx context.Context, line string) (members []backend.Member, err error) {
	a, err := s.repeat(ctx, "imported", line)
	if err != nil {
		return nil, err
	}
	for i := range a.rows[1:] {
		r := &a.rows[i+1]
		r.text()
		members = append(members, r.member(line))
		if err := r.err(); err != nil {
			return nil, err
		}
	}
	return members, nil
}

// WatchLine blocks until other members stand in the line than in after; see [backend.Session].
func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (l backend.Line, err error) {
	err = s.watch(ctx, []string{lineChannel(line)}, nil, func() (bool, error) {
		l, err = s.line(ctx, line, math.MaxInt32, s.look)
		return err == nil && !kit.SameMembers(l, after), err
	})
	return l, err
}

// Pin makes m outlive the session, and writes the header in the same transaction; see
// [backend.Session]. It may be repeated.
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	s.pins.Begin(m)
	_, err := kit.Await(ctx, s.Life, func() (answer, error) {
		q := &request{function: "pin", args: []any{m.Line, m.Position, h.Encode(), at}}
		a, err := s.again(ctx, q)
		if errors.Is(err, errPinned) && q.lost && s.pins.Alone(m) {
			err = nil
		}
		return a, err
	})
	return err
}

// errPinned says that a member is pinned already, and that the header is another one.
var errPinned = fmt.Errorf("%w: the member is pinned already", backend.ErrVersion)
