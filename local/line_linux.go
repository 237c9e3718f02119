package local

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Line returns the whole line; see [backend.Session]. It tests the lock of each
// member.
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	st, err := s.lineOf(ctx, line)
	if err != nil {
		return backend.Line{}, err
	}
	header, err := st.header()
	if err != nil {
		return backend.Line{}, err
	}
	return backend.Line{Members: st.members, Header: header, Version: st.version}, nil
}

// lineOf returns the state of a line without the members that have gone.
//
// Whether a member has gone is decided under the line's lock, for two reasons. If a member
// was pinned and its process then died, a state that was read before would make it look
// dead. And a write on condition of the member might still be under way.
func (s *session) lineOf(ctx context.Context, line string) (*state, error) {
	st, err := s.b.load(line)
	if err != nil {
		return nil, err
	}
	listed := len(st.members)
	if err := s.b.drop(st); err != nil || len(st.members) == listed {
		return st, err
	}
	return st, s.settled(ctx, line, func() error {
		if st, err = s.b.load(line); err != nil {
			return err
		}
		return s.b.drop(st)
	})
}

// settled runs fn while nobody writes to the line.
func (s *session) settled(ctx context.Context, line string, fn func() error) error {
	ctx, cancel := s.bounded(ctx, line)
	defer cancel()
	h, err := s.b.acquire(ctx, shared, line)
	if err != nil {
		return err
	}
	defer h.release()
	return fn()
}
