package broken

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
)

var runFlaws = []Flaw{
	{
		Name:     "nil when cancelled",
		Breaks:   "G9, Run: a campaign that is cancelled returns neither a term nor an error",
		Must:     "G4.middle G6.cancelled G6.first G6.cut G6.later G9.campaigns G9.ended-context G9.never-nil Run.waits Run.cancelled",
		election: elections(func(e election.Election, _ backend.Backend, _ string) election.Election { return &nilWhenCancelled{e} }),
	},
	{
		Name:     "leads again",
		Breaks:   "Run: when the function has returned while it led, Run campaigns again",
		Must:     "Run.returns",
		May:      "Run.lost",
		election: runs(leadsAgain),
	},
	{
		Name:     "stands again",
		Breaks:   "Run: when the function has resigned and returned, Run campaigns again",
		Must:     "Run.resigned",
		election: runs(standsAgain),
	},
	{
		Name:     "resigns at once",
		Breaks:   "Run: it resigns when its context ends, while the function may still be at work",
		Must:     "Run.waits",
		election: runs(resignsAtOnce),
	},
	{
		Name:     "does not wait",
		Breaks:   "Run: after a loss it goes on before the function has returned",
		Must:     "Run.lost Run.resigned",
		election: runs(doesNotWait),
	},
	{
		Name:     "swallows errors",
		Breaks:   "Run: what the function says is dropped where Run's context has ended",
		Must:     "Run.waits",
		election: runs(swallowsErrors),
	},
	{
		Name:     "swallows panics",
		Breaks:   "Run: a panic of the function is turned into an error",
		Must:     "Run.panic",
		election: runs(swallowsPanics),
	},
}

type nilWhenCancelled struct{ election.Election }

func (e *nilWhenCancelled) Campaign(ctx context.Context) (election.Term, error) {
	t, err := e.Election.Campaign(ctx)
	if ctx.Err() != nil && t == nil {
		return nil, nil
	}
	return t, err
}

func (e *nilWhenCancelled) Run(ctx context.Context, fn work) error {
	err := e.Election.Run(ctx, fn)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// work is what Run calls.
type work = func(context.Context, election.Term) error

// runs makes elections with another Run.
func runs(run func(ctx context.Context, e election.Election, fn work) error) election.Maker {
	return elections(func(e election.Election, _ backend.Backend, _ string) election.Election { return &runner{e, run} })
}

type runner struct {
	election.Election
	run func(context.Context, election.Election, work) error
}

func (e *runner) Run(ctx context.Context, fn work) error { return e.run(ctx, e.Election, fn) }

func leadsAgain(ctx context.Context, e election.Election, fn work) error {
	for {
		returned := false
		err := e.Run(ctx, func(ctx context.Context, t election.Term) error {
			err := fn(ctx, t)
			returned = t.Check() == nil
			return err
		})
		if !returned || ctx.Err() != nil {
			return err
		}
	}
}

func standsAgain(ctx context.Context, e election.Election, fn work) error {
	for {
		resigned := false
		err := e.Run(ctx, func(ctx context.Context, t election.Term) error {
			err := fn(ctx, t)
			resigned = errors.Is(context.Cause(ctx), elect.ErrResigned)
			return err
		})
		if !resigned || ctx.Err() != nil {
			return err
		}
	}
}

func resignsAtOnce(ctx context.Context, e election.Election, fn work) error {
	return e.Run(ctx, func(ctx context.Context, t election.Term) error {
		defer context.AfterFunc(ctx, func() { _ = t.Resign(context.WithoutCancel(ctx)) })()
		return fn(ctx, t)
	})
}

func doesNotWait(ctx context.Context, e election.Election, fn work) error {
	return e.Run(ctx, func(led context.Context, t election.Term) error {
		returned := make(chan func() error, 1)
		go func() {
			defer func() {
				if p := recover(); p != nil {
					returned <- func() error { panic(p) }
				}
			}()
			err := fn(led, t)
			returned <- func() error { return err }
		}()
		select {
		case result := <-returned:
			return result()
		case <-led.Done():
		}
		if ctx.Err() != nil {
			return (<-returned)()
		}
		return context.Cause(led)
	})
}

func swallowsErrors(ctx context.Context, e election.Election, fn work) error {
	err := e.Run(ctx, fn)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func swallowsPanics(ctx context.Context, e election.Election, fn work) error {
	return e.Run(ctx, func(ctx context.Context, t election.Term) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the function panicked: %v", p)
			}
		}()
		return fn(ctx, t)
	})
}
