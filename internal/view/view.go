// Package view shows a backend to an election in another way. So recipes stand in line, are told
// of what they lose, and leave, as elections do.
package view

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/backoff"
)

// Of returns b with sessions as wrap makes them.
func Of(b backend.Backend, wrap func(backend.Session) backend.Session) backend.Backend {
	return &of{b, wrap}
}

type of struct {
	backend.Backend
	wrap func(backend.Session) backend.Session
}

// Unwrap returns the backend that is shown.
func (b *of) Unwrap() backend.Backend { return b.Backend }

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

var _ backend.PlaceWatcher = Shared{}

func (s Shared) Join(ctx context.Context, line, value string) (backend.Member, error) {
	m, err := s.JoinShared(ctx, line, value)
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%s cannot be shared on this backend, which has no shared members; use %s: %w", line, s.Instead, err)
	}
	return m, err
}

// Outlived is that of the session, or a substitute for it.
func (s Shared) Outlived(ctx context.Context, record, line string) (bool, error) {
	return again.Outlived(ctx, s.Session, record, line)
}

// WatchPlace is that of the session, or a substitute for it.
func (s Shared) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	return again.WatchPlace(ctx, s.Session, m, p, backoff.JitterOf(ctx))
}

// WatchPlace is [backend.PlaceWatcher] for a session that asks more than the session on before it
// says First, and that never takes back what it has said. So whoever is first has to hear only what
// on says of its place. Everybody else waits by the session's own Gone and Ahead.
func WatchPlace(ctx context.Context, s, on backend.Session, m backend.Member, p *backend.Place) error {
	j := backoff.JitterOf(ctx)
	if p.First {
		return again.WatchPlace(ctx, on, m, p, j)
	}
	return again.AskPlace(ctx, s, m, p, j)
}
