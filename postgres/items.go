package postgres

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Append adds an item at the end of the line; see [backend.Session].
func (s *session) Append(ctx context.Context, line, value string) (backend.Member, error) {
	a, err := s.once(ctx, "append", line, []byte(value))
	if err != nil {
		return backend.Member{}, err
	}
	r := a.first()
	m := memberAt(line, r.position(), []byte(value))
	m.Pinned = true
	s.b.saw(int64(m.Position))
	return m, r.err()
}

// Remove removes the item m if by still stands; see [backend.Session].
func (s *session) Remove(ctx context.Context, m, by backend.Member) error {
	_, err := s.once(ctx, "remove", m.Line, m.Position, by.Line, by.Position)
	return err
}

// Free returns the first item that nobody claims; see [backend.Session].
func (s *session) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	a, err := s.repeat(ctx, "free", items, claims)
	if err != nil {
		return backend.Member{}, err
	}
	line := items
	if a.why == "claim" {
		line = claims
	}
	r := a.first()
	m := r.member(line)
	if err := r.err(); err != nil {
		return backend.Member{}, err
	}
	if a.why != "" {
		return backend.Member{}, kit.Foreign(m, a.why)
	}
	return m, nil
}
