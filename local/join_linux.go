package local

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Join adds a member at the end of the line. It writes two files to the disk; see
// [backend.Session].
func (s *session) Join(ctx context.Context, line, value string) (backend.Member, error) {
	return s.join(ctx, backend.Member{Line: line, Value: value})
}

// JoinShared is Join for a shared member; see [backend.Sharer].
func (s *session) JoinShared(ctx context.Context, line, value string) (backend.Member, error) {
	return s.join(ctx, backend.Member{Line: line, Value: value, Shared: true})
}

// join adds a member like m at the end of its line, and returns it with its key and position.
// The session holds it, unless it is pinned.
func (s *session) join(ctx context.Context, m backend.Member) (backend.Member, error) {
	err := s.write(ctx, func(ctx context.Context, h *hold) error {
		st, err := s.b.load(m.Line)
		if err != nil {
			return err
		}
		position, err := s.b.next(ctx, h, st.newest())
		if err != nil {
			return err
		}
		if err := s.b.drop(st); err != nil {
			return err
		}
		p, err := s.b.dir.stand(m.Line, position)
		if err != nil {
			return err
		}
		m.Key, m.Position = key(position), position
		st.members = append(st.members, m)
		if err := s.b.store(st); err != nil {
			p.leave() // whether @state lists it or not, nobody owns it
			return err
		}
		if m.Pinned {
			p.pinned = true
			p.leave()
		} else {
			s.mu.Lock()
			s.places[position] = p
			s.mu.Unlock()
		}
		s.b.sweep(st)
		return nil
	}, m.Line)
	return m, err
}
