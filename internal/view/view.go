// Package view shows a backend to an election in another way. So recipes stand in line, are told
// of what they lose, and leave, as elections do.
package view

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// Of returns b with sessions as wrap makes them.
func Of(b backend.Backend, wrap func(backend.Session) backend.Session) backend.Backend {
	return &of{b, wrap}
}

type of struct {
	backend.Backend
	wrap func(backend.Session) backend.Session
}

func (b *of) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	return b.wrap(s), nil
}

// Shared is a session that joins as a shared member.
type Shared struct {
	backend.Session
	// Instead says what to use where the backend has no shared members.
	Instead string
}

func (s Shared) Join(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.JoinShared(ctx, line, value)
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%s cannot be shared on this backend, which has no shared members; use %s: %w", line, s.Instead, err)
	}
	return m, err
}
