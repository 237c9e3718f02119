package recipe

import (
	"context"

	"github.com/succession-dev/succession/elect"
)

// InTurn returns a context for what is done in a turn: it ends with ctx, and with the term of the turn. The caller must call over
// afterwards, which leaves the turn. If that fails, a goroutine tries on, and nobody else has a turn until then.
//
// If the context ends before, the turn is left at that moment, beside the line in which the caller still stands: to leave each of
// them may take ResignTimeout.
func InTurn(ctx context.Context, turn *elect.Term) (inTurn context.Context, over func()) {
	inTurn, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(turn.Context(), func() { cancel(context.Cause(turn.Context())) })
	stopLeaving := context.AfterFunc(inTurn, func() { turn.Resign(ctx) })
	return inTurn, func() {
		stop()
		stopLeaving()
		cancel(nil)
		turn.Resign(ctx)
	}
}
