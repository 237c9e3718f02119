package controllerruntime

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/succession-dev/succession/elect"
)

// Setup adds controllers and other runnables to the manager of a term, as is done before a manager is
// started. ctx is that of the term. An error ends [Run].
type Setup func(ctx context.Context, m manager.Manager, t *elect.Term) error

var (
	errNoSetup = errors.New("controllerruntime: Run was given no function that sets a manager up")
	errElects  = errors.New("controllerruntime: the options turn on the manager's own leader election (LeaderElection); leave it off, as it would hold up the leader of this one")
)

// Run campaigns in e, and as often as this process leads it makes a manager, sets it up, and starts it. It
// blocks until ctx ends, until a manager that leads has stopped by itself, or until an error does
// not pass; see [elect.Election.Run]. Before it returns, all runnables have returned. Like Start of a manager it returns nil
// when ctx has ended, unless a runnable has failed.
//
// Of the options Run sets three. GracefulShutdownTimeout is without a limit, as the next in line must not
// lead while a runnable works. BaseContext is made to end with the term, so that all runnables hear
// of that at once and in no order. Controller.SkipNameValidation is true, because a later term
// has controllers with the same names.
func Run(ctx context.Context, e *elect.Election, config *rest.Config, o manager.Options, setup Setup) error {
	switch {
	case setup == nil:
		return errNoSetup
	case o.LeaderElection:
		return errElects
	}
	err := e.Run(ctx, func(ctx context.Context, t *elect.Term) error {
		within, cancel := within(ctx, o.BaseContext)
		defer cancel()
		m, err := manager.New(config, optionsFor(within, o))
		if err != nil {
			return err
		}
		if err := setup(ctx, m, t); err != nil {
			return err
		}
		return m.Start(ctx)
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// within returns the context that base returns, or one without values, ended when ctx ends.
func within(ctx context.Context, base manager.BaseContextFunc) (context.Context, context.CancelFunc) {
	parent := context.Background()
	if base != nil {
		parent = base()
	}
	within, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return within, func() {
		stop()
		cancel(nil)
	}
}

func optionsFor(ctx context.Context, o manager.Options) manager.Options {
	forever, yes := time.Duration(-1), true
	o.GracefulShutdownTimeout = &forever
	o.BaseContext = func() context.Context { return ctx }
	o.Controller.SkipNameValidation = &yes
	return o
}
