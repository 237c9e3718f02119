package kit

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// Usable returns why nothing can be sent under ctx and the session; nil if it can.
func (l *Life) Usable(ctx context.Context) error {
	if err := l.Alive(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Bind returns a context that ends with ctx and with the session; its cause tells which.
// The caller must call the func. No goroutine waits for either.
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

// Run runs one method of the contract that returns nothing but an error; see [Call].
func (l *Life) Run(ctx context.Context, op, name string, f func(ctx context.Context) error) error {
	_, err := Call(ctx, l, op, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

// Call runs one method of the contract. f gets a context that ends with ctx and with the
// session. Where f fails, or name can name no election or record, Call returns the zero
// value, and the error as that of the operation on name.
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

// Retry calls f again and again, with a pause in between, as long as it fails with an
// error that may pass by itself. It returns the cause of ctx when that ends in a pause.
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
