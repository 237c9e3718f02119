package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/value"
)

// In a line of shared members all are in, and none waits for another. A member that is not shared does not belong there, except for
// the gate of a pause. Those behind it wait until it goes.

// In returns the members that are in, and the first that is not shared, or nil if there is none.
func In(line backend.Line) (in []backend.Member, other *backend.Member) {
	i := slices.IndexFunc(line.Members, func(m backend.Member) bool { return !m.Shared })
	if i < 0 {
		return line.Members, nil
	}
	return line.Members[:i], &line.Members[i]
}

// Paused reports whether other, which [In] has found in the line, is the gate of a pause. It may not be pinned yet.
func Paused(line backend.Line, other *backend.Member) bool {
	if other == nil || !other.Pinned {
		return other != nil && value.Parse(other.Value).Gate
	}
	l, _ := header.LineOf(line) // a header that cannot be understood names no gate
	gate, paused := l.Paused()
	return paused && gate.Position == other.Position
}

// Misused says that other, which stands in a line of shared members, does not belong there.
func (r Recipe) Misused(name string, other *backend.Member) error {
	return fmt.Errorf("%s: %w %s %s: its line %s is used for an election or a lock, for %s stands there; give the %s a name beside which nothing else uses it",
		r.Package, backend.ErrInvalid, r.Owner, name, other.Line, value.Named(*other), r.Owner)
}

// Join makes this process a member of the line of e. While the line is paused, it waits. It fails with [backend.ErrInvalid] if
// somebody stands in front who does not belong there.
func (r Recipe) Join(ctx context.Context, b backend.Backend, name string, e *elect.Election) (*elect.Term, error) {
	for {
		t, err := e.TryCampaign(ctx)
		if !errors.Is(err, elect.ErrNotFirst) {
			return t, err
		}
		if err := r.await(ctx, b, name, e.Name()); err != nil {
			return nil, err
		}
	}
}

// await blocks until the line is not paused.
func (r Recipe) await(ctx context.Context, b backend.Backend, name, line string) error {
	j := backoff.JitterOf(ctx)
	return again.Until(ctx, again.Passing, func() (bool, error) {
		s, err := b.Session(ctx)
		if err != nil {
			return false, err
		}
		l, err := s.Line(ctx, line)
		if err != nil {
			return false, err
		}
		_, other := In(l)
		switch {
		case other == nil:
			return true, nil
		case !Paused(l, other):
			return false, r.Misused(name, other)
		}
		return false, again.ForAWhile(ctx, s, j, func(ctx context.Context) error { return s.Gone(ctx, *other) })
	})
}
