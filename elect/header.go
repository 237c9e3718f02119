package elect

import (
	"context"
	"fmt"
	"math"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// AskToResign asks whoever leads now to resign, and returns that leader. The
// leader's term ends with [ErrAsked] as its cause as soon as it hears of it; its
// [Election.Run] then stands at the end of the line again. AskToResign blocks for
// about three round trips and does not wait for the change of leadership; use
// [Election.Observe] for that. It returns [ErrNoLeader] where nobody leads, and an error
// that matches [errors.ErrUnsupported] where the backend has no records.
func (e *Election) AskToResign(ctx context.Context) (Leader, error) {
	s, err := e.session(ctx)
	if err != nil {
		return Leader{}, err
	}
	l, err := e.leader(ctx, s)
	if err != nil {
		return Leader{}, err
	}
	if l.Vacant() {
		return Leader{}, ErrNoLeader
	}
	return l, header.Update(ctx, s, e.name, backend.Member{}, func(h *backend.Header) bool {
		if h.Resign >= l.Token {
			return false
		}
		h.Resign = l.Token
		return true
	})
}

// maxFence leaves room for positions above the fence.
const maxFence = math.MaxUint64 / 2

// RaiseFence makes every token of this election from now on larger than floor. It
// is for an operator whose coordinator was rebuilt or restored, so that its log,
// and tokens with it, went back; it never makes tokens smaller. A leader that was
// elected before keeps the token it has. The floor outlives a deletion of the election, by
// a record of the election's name with ".fence" at the end. RaiseFence blocks for about
// four round trips. A backend without records makes it fail with [errors.ErrUnsupported].
func (e *Election) RaiseFence(ctx context.Context, floor uint64) error {
	if floor > maxFence {
		return fmt.Errorf("elect: %w fence %d: at most %d is possible", backend.ErrInvalid, floor, uint64(maxFence))
	}
	s, err := e.session(ctx)
	if err != nil {
		return err
	}
	return header.Raise(ctx, s, e.name, backend.Member{}, floor)
}
