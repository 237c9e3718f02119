// Package view wraps the sessions of a backend. Recipes run elections on such a view, so they join,
// learn of a loss, and leave as elections do.
package view

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
)

// Of returns b with sessions as wrap makes them.
func Of(b backend.Backend, wrap func(backend.Session) backend.Session) backend.Backend {
	return &of{b, wrap}
}

type of struct {
	backend.Backend
	wrap func(backend.Session) backend.Session
}

// Unwrap returns the backend below the view.
func (b *of) Unwrap() backend.Backend { return b.Backend }

// For passes on that b keeps each election on one of several coordinators; see [backend.For].
func (b *of) For(election string) backend.Backend {
	return Of(backend.For(b.Backend, election), b.wrap)
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
	// Instead says, for an error, what to use if the backend has no shared members.
	Instead string
}

func (s Shared) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.JoinShared(ctx, line, value, record)
	return j, s.explain(line, err)
}

func (s Shared) explain(line string, err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%s cannot be shared on this backend, which has no shared members; use %s: %w", line, s.Instead, err)
	}
	return err
}

// Beside returns b for a line that is of use only beside the line shared, whose members are shared: where
// there are none, its sessions fail to join as a [Shared] does. So nothing stands, and no migration begins,
// for a recipe that does not work there.
func Beside(b backend.Backend, shared, instead string) backend.Backend {
	other := backend.For(b, shared)
	return Of(b, func(s backend.Session) backend.Session { return beside{s, other, shared, instead} })
}

type beside struct {
	backend.Session
	other           backend.Backend // of the line shared
	shared, instead string
}

func (s beside) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	o, err := s.other.Session(ctx)
	if err != nil {
		return backend.Joined{}, err
	}
	// Such a claim is refused without a request. Where there are no shared members, that is the reason.
	if _, err := o.Claim(ctx, s.shared, "", "", backend.Member{}); errors.Is(err, errors.ErrUnsupported) {
		return backend.Joined{}, Shared{Instead: s.instead}.explain(s.shared, err)
	}
	return s.Session.Join(ctx, line, value, record)
}

// Unplaced returns what Join has returned, without the place. It is for a session whose own Ahead
// asks more.
func Unplaced(j backend.Joined, err error) (backend.Joined, error) {
	j.Place = nil
	return j, err
}

// WatchPlace is the WatchPlace of a session s that wraps the session on. s may say that a member waits
// where on says that it is first, and never says again that a first member waits. So a member that is
// first needs only on's WatchPlace. All others wait by the Gone and Ahead of s.
func WatchPlace(ctx context.Context, s, on backend.Session, m backend.Member, p *backend.Place) error {
	if p.First {
		return on.WatchPlace(ctx, m, p)
	}
	return again.WatchPlace(ctx, s, m, p)
}

// Asked is a session whose Join, Head and WatchPlace use only Ahead, Gone and Line. It is for
// sessions that change one of these three.
type Asked struct{ backend.Session }

func (s *Asked) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Session.Join(ctx, line, value, record)
	return backend.Joined{Member: j.Member}, err
}

func (s *Asked) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	j, err := s.Session.JoinShared(ctx, line, value, record)
	return backend.Joined{Member: j.Member}, err
}

func (s *Asked) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	j, err := s.Session.Claim(ctx, line, value, record, item)
	return backend.Joined{Member: j.Member}, err
}

func (s *Asked) Head(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	l.Members = l.Members[:min(1, len(l.Members))]
	return l, err
}

func (s *Asked) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	return again.WatchPlace(ctx, s.Session, m, p)
}
