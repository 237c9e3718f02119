package elect

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/succession-dev/succession/backend"
)

// AskToResign asks whoever leads now to resign, and returns that leader. The
// leader's term ends with [ErrAsked] as its cause as soon as it hears of it; its
// [Election.Run] then stands at the end of the line again. AskToResign blocks for
// about three round trips and does not wait for the change of leadership; use
// [Election.Observe] for that. It returns [ErrNoLeader] where nobody leads.
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
	return l, e.updateHeader(ctx, s, backend.Member{}, func(h *backend.Header) bool {
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
// elected before keeps the token it has. It blocks for about two round trips.
func (e *Election) RaiseFence(ctx context.Context, floor uint64) error {
	if floor > maxFence {
		return fmt.Errorf("elect: %w fence %d: at most %d is possible", backend.ErrInvalid, floor, uint64(maxFence))
	}
	s, err := e.session(ctx)
	if err != nil {
		return err
	}
	return e.updateHeader(ctx, s, backend.Member{}, func(h *backend.Header) bool {
		if h.Fence >= floor {
			return false
		}
		h.Fence = floor
		return true
	})
}

// updateHeader changes the election's own record, on condition that m, if any,
// still stands. It tries again when somebody else wrote at the same time, or when
// the answer was lost: change is a function of what is stored, and reports whether
// there is anything to write.
func (e *Election) updateHeader(ctx context.Context, s backend.Session, m backend.Member, change func(*backend.Header) bool) error {
	wait := newBackoff(ctx)
	for {
		r, err := s.Get(ctx, e.name)
		if err == nil {
			var h backend.Header
			if h, err = backend.ParseHeader(r.Value); err != nil {
				return err
			}
			if !change(&h) {
				return nil
			}
			_, err = s.Put(ctx, e.name, h.Encode(), &backend.If{Version: r.Version, Member: m})
		}
		if !errors.Is(err, backend.ErrVersion) && !errors.Is(err, backend.ErrUnavailable) {
			return err
		}
		if err := wait.Sleep(ctx); err != nil {
			return err
		}
	}
}
