package elect

import (
	"context"
	"fmt"
	"math"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// AskToResign asks the present leader to resign, and returns that leader. As soon as the
// leader hears of it, its term ends with [ErrAsked] as the cause; its [Election.Run]
// then joins again, at the end of the line. AskToResign blocks for about three round
// trips. It does not wait until another leads; use [Election.Observe] for that. It
// returns [ErrNoLeader] if nobody leads, and an error that matches
// [errors.ErrUnsupported] if the backend has no records.
func (e *Election) AskToResign(ctx context.Context) (Leader, error) {
	line, s, err := e.head(ctx)
	if err != nil {
		return Leader{}, err
	}
	l := first(line)
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

// RaiseFence makes every later token of this election larger than floor. An operator
// needs it after the coordinator was rebuilt or restored, because tokens then fall. It
// never makes tokens smaller. A leader that was elected before keeps its token.
//
// The fence is kept when the election is deleted: it also stands in a record named like
// the election with ".fence" at the end. RaiseFence blocks for about four round trips.
// Its error matches [errors.ErrUnsupported] if the backend has no records.
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
