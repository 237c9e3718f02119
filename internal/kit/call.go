package kit

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// Usable returns nil if a request can be sent. If the session or ctx has ended, it returns why.
func (l *Life) Usable(ctx context.Context) error {
	if err := l.Alive(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Bind returns a context that ends when ctx or the session does, with the cause of that one.
// The caller must call the func when it is done. Bind starts no goroutine.
func (l *Life) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(context.Cause(l.ctx)) }
	if l.ctx.Err() != nil {
		end()
	}
	stop := context.AfterFunc(l.ctx, end)
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Run is [Call] for a method of the contract that returns only an error.
func (l *Life) Run(ctx context.Context, op, name string, f func(ctx context.Context) error) error {
	_, err := Call(ctx, l, op, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

// Call runs f as one method of the contract. The context of f ends when ctx or the session
// does. If f fails, or if the session or ctx has ended before, or if name is no valid name of
// an election or a record, Call returns the zero value and an error that names op and name.
func Call[T any](ctx context.Context, l *Life, op, name string, f func(ctx context.Context) (T, error)) (T, error) {
	var none T
	err := l.Usable(ctx)
	if err == nil {
		err = backend.CheckName(name)
	}
	if err == nil {
		var v T
		ctx, release := l.Bind(ctx)
		defer release()
		if v, err = f(ctx); err == nil {
			return v, nil
		}
		if l.rules.Explain != nil {
			err = l.rules.Explain(ctx, err)
		}
	}
	return none, l.sessions.Driver.Wrap(op, name, err)
}

// Retry calls f until it succeeds, or fails with an error for which passing is false: one that
// does not pass by itself. It pauses between the calls. If ctx ends in a pause, it returns the
// cause of ctx.
func Retry[T any](ctx context.Context, pause backoff.Backoff, passing func(error) bool, f func(ctx context.Context) (T, error)) (T, error) {
	for {
		v, err := f(ctx)
		if err == nil || !passing(err) {
			return v, err
		}
		if err := pause.Sleep(ctx); err != nil {
			var none T
			return none, err
		}
	}
}
