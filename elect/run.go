package elect

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// Run campaigns and calls fn while this candidate leads, with a context that ends
// when leadership does, and campaigns again when leadership was lost. It blocks
// until fn has returned while leading, ctx ends, or something is wrong that does
// not pass by itself. It returns
//
//   - what fn returned, if it returned while leading, or after it had called
//     [Term.Resign] while leading, nil included;
//   - the cause of ctx, if ctx ended, as [Election.Campaign] does;
//   - the error of [Election.Campaign] otherwise.
//
// It has always left the line, or tries on in the background as [Term.Resign] does, and
// fn has always returned, before Run returns; after ctx has ended, leaving takes at most
// [Options] ResignTimeout. If fn panics, Run resigns and passes the panic on. Each
// call of Run is a candidate of its own.
func (e *Election) Run(ctx context.Context, fn func(ctx context.Context, t *Term) error) error {
	if fn == nil {
		return fmt.Errorf("elect: %w call of Run: it was given no function", backend.ErrInvalid)
	}
	for {
		t, err := e.campaign(ctx, ctx)
		if err != nil {
			return err
		}
		lost, err := t.lead(ctx, fn)
		switch {
		case lost == nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		e.o.Logger.Warn("leadership lost, joining again", "err", lost)
	}
}

// lead calls fn, and resigns when it has returned, or panicked. lost is why the
// term was lost before fn returned; nil if it was not, and err is then the result of
// Run. What happens while it resigns changes neither. Whoever resigns in fn is done with
// leading, as who returns from it.
func (t *Term) lead(ctx context.Context, fn func(ctx context.Context, t *Term) error) (lost, err error) {
	defer t.Resign(ctx)
	err = fn(t.ctx, t)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if lost = t.Check(); errors.Is(lost, ErrResigned) {
		lost = nil
	}
	return lost, err
}
