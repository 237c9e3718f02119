package local

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Join adds a member at the end of the line. It writes two files to the disk; see
// [backend.Session].
func (s *session) Join(ctx context.Context, line, value string) (backend.Member, error) {
	return s.join(ctx, line, value, false)
}

// JoinShared is Join for a shared member; see [backend.Sharer].
func (s *session) JoinShared(ctx context.Context, line, value string) (backend.Member, error) {
	return s.join(ctx, line, value, true)
}

func (s *session) join(ctx context.Context, line, value string, shared bool) (m backend.Member, err error) {
	err = s.write(ctx, func(ctx context.Context, h *hold) error {
		st, err := s.b.load(line)
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
		p, err := s.b.dir.stand(line, position)
		if err != nil {
			return err
		}
		joined := newMember(line, position, value, shared)
		st.members = append(st.members, joined)
		if err := s.b.store(st); err != nil {
			p.leave() // whether @state lists it or not, nobody owns it
			return err
		}
		s.mu.Lock()
		s.places[position] = p
		s.mu.Unlock()
		m = joined
		s.b.sweep(st)
		return nil
	}, line)
	return m, err
}
