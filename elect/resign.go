package elect

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// ResignOptions say which leader [Election.AskToResign] asks. Nil and the zero value mean the present one.
type ResignOptions struct {
	// Token names the term that is meant: if another term leads by now, nobody is asked, and the
	// error is [ErrOtherLeader]. So a request that comes late, or comes twice, never ends the term of the
	// next leader. Zero means the present term.
	Token uint64
}

// AskToResign asks the present leader to resign, and returns that leader. As soon as the
// leader hears of it, its term ends with [ErrAsked] as the cause; its [Election.Run]
// then joins again, at the end of the line. AskToResign blocks for about three round
// trips. It does not wait until another leads; use [Election.Observe] for that. It
// returns [ErrNoLeader] if nobody leads, and an error that matches
// [errors.ErrUnsupported] if the backend has no records. o may be nil.
func (e *Election) AskToResign(ctx context.Context, o *ResignOptions) (Leader, error) {
	if o == nil {
		o = new(ResignOptions)
	}
	line, s, err := e.head(ctx)
	if err != nil {
		return Leader{}, err
	}
	l := first(line)
	switch {
	case l.Vacant():
		return Leader{}, ErrNoLeader
	case o.Token != 0 && o.Token != l.Token:
		return l, fmt.Errorf("%w: %s leads with token %d, and not with %d", ErrOtherLeader, l.ID, l.Token, o.Token)
	}
	return l, header.Update(ctx, s, e.name, backend.Member{}, func(h *backend.Header) bool {
		if h.Resign >= l.Token {
			return false
		}
		h.Resign = l.Token
		return true
	})
}
