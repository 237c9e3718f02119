package kit

import (
	"context"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
)

// WatchPlace is WatchPlace of [backend.Session] for a coordinator that cannot watch a place. It
// waits by the Gone and Watch of s, and asks Ahead after that and once in about a session time.
func WatchPlace(ctx context.Context, s backend.Session, m backend.Member, p *backend.Place) error {
	return again.WatchPlace(ctx, s, m, p)
}

// BeforeWatch lets a moment pass if p says First. A driver whose watches are requests begins WatchPlace with
// it: most locks, and most items of a queue, are held for less, and then cost no watch. Nothing is missed, because a
// watch begins with a look. A member that waits for another is watched at once.
func BeforeWatch(ctx context.Context, p *backend.Place) error {
	if !p.First {
		return nil
	}
	return backoff.Sleep(ctx, moment)
}

const moment = 50 * time.Millisecond

// PlaceOf decides where m stands, for all drivers. m must be as the line has it now, because it
// matters whether m is pinned. ahead is the member that m waits for, or nil; see [Awaited]. h is
// the header, read no earlier than the line.
//
// If the election is sealed, the seal stands pinned at the head of its line. For every other member
// PlaceOf fails with a [*backend.SealedError], also for one that is at the head because the seal
// was removed. It fails with [backend.ErrHeader] if m is first and no token can be made for it. It
// fails so for every member if the header needs a later version ([backend.Header.Understood]).
func PlaceOf(m backend.Member, ahead *backend.Member, h backend.Header) (backend.Place, error) {
	if h.Sealed != "" && !(ahead == nil && m.Pinned) {
		return backend.Place{}, &backend.SealedError{To: h.Sealed}
	}
	if err := h.Understood(); err != nil {
		return backend.Place{}, err
	}
	if ahead != nil {
		return backend.Place{Ahead: *ahead, Header: h}, nil
	}
	token, err := h.Token(m.Position)
	if err != nil {
		return backend.Place{}, err
	}
	return backend.Place{First: true, Token: token, Header: h}, nil
}

// SameMembers reports whether the same members stand in a and in b, two states of one line.
func SameMembers(a, b backend.Line) bool {
	return slices.EqualFunc(a.Members, b.Members, func(m, o backend.Member) bool { return m.Key == o.Key && m.Position == o.Position })
}

// Awaited returns the index of the member that the i-th in line waits for, or -1 if that is
// first (law L9). shared says of each in front, and of the i-th itself, whether it is shared.
func Awaited(i int, shared func(i int) bool) int {
	front := i - 1
	if shared(i) {
		for front >= 0 && shared(front) {
			front--
		}
	}
	return front
}
