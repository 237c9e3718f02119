package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
)

// Run keeps this process in the group: it joins, calls fn with the presence, and joins again when
// the presence was lost. The context of fn ends when the presence is lost, and when ctx ends. Run
// waits for fn, and then leaves. After it has joined again, the member has another token, and not
// the value that it had set.
//
// Run returns what fn returns while it is present, nil included; the cause of ctx, if ctx ends; or
// an error that does not pass by itself, such as [backend.ErrDenied]. If fn panics, Run leaves and
// passes the panic on.
func (g *Group) Run(ctx context.Context, fn func(ctx context.Context, p *Presence) error) error {
	if fn == nil {
		return fmt.Errorf("group: %w call of Run: it was given no function", backend.ErrInvalid)
	}
	wait := backoff.New(ctx)
	for {
		p, err := g.Join(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		lost, err := p.during(ctx, fn)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case lost == nil:
			return err
		}
		g.o.Logger.Warn("presence lost, joining again", "err", lost, "work", err)
		if time.Since(began) > wait.Max {
			wait.Reset()
		}
		if err := wait.After(ctx, lost); err != nil {
			return err
		}
	}
}

// during calls fn, and leaves when it has returned. If the presence was lost before, lost says why.
func (p *Presence) during(ctx context.Context, fn func(ctx context.Context, p *Presence) error) (lost, err error) {
	defer p.Leave(ctx)
	present, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.Context(), func() { cancel(context.Cause(p.Context())) })()
	err = fn(present, p)
	if lost = p.Check(); errors.Is(lost, elect.ErrResigned) { // fn has left
		lost = nil
	}
	return lost, err
}
