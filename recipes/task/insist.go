package task

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/ending"
)

// insist calls f again as long as its error may pass, ctx lasts, and the term under which f works
// is not lost. f must also be right if an earlier call of it has had its effect.
func insist(ctx context.Context, f func() error) error {
	return again.Try(ctx, func(err error) bool { return again.Passing(err) && !errors.Is(err, elect.ErrLost) }, f)
}

// guarded returns the error of a call that the coordinator does only while the member of t stands.
// If the member has gone, the error is a [*elect.LostError].
func guarded(t *elect.Term, err error) error {
	if errors.Is(err, backend.ErrNotMember) || errors.Is(err, backend.ErrSessionEnded) {
		return &elect.LostError{Election: t.Member().Line, Token: t.Token(), Err: err}
	}
	return err
}

// during returns a context that ends with the term t, and with ctx.
func during(ctx context.Context, t *elect.Term) (context.Context, context.CancelCauseFunc) {
	alive, cancel := context.WithCancelCause(t.Context())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return alive, func(cause error) {
		stop()
		cancel(cause)
	}
}

// outcome returns why a machine does not go on after work has ended with err, or nil if it is to
// stand in line again. alive is the context of the work, from [during], and ctx that of the
// machine.
func outcome(ctx, alive context.Context, t *elect.Term, err error) error {
	over := overOf(alive, t)
	switch {
	case ctx.Err() != nil:
		return ending.Ended(ctx, context.Cause(ctx))
	case replaced(t, err):
		return nil
	case over == nil, errors.Is(over, elect.ErrResigned):
		return err
	case errors.Is(over, elect.ErrLost), errors.Is(over, elect.ErrAsked), errors.Is(over, ErrStopped), errors.Is(over, ErrConfigured):
		return nil
	}
	return over
}

// replaced reports whether err says that t has been lost: the coordinator has refused a write, maybe before t knew of its end.
func replaced(t *elect.Term, err error) bool {
	var lost *elect.LostError
	return errors.As(err, &lost) && lost.Election == t.Member().Line && lost.Token == t.Token()
}

// overOf returns why work under t must not go on, or nil if it may. It also notices a pause of the
// process.
func overOf(alive context.Context, t *elect.Term) error {
	_ = t.Check() // if Check ends the term, alive ends with it
	return context.Cause(alive)
}
