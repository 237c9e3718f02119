package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/ending"
)

// Run keeps this process in the group: it joins, calls fn with the presence, and joins again when
// the presence was lost. The context of fn ends when the presence is lost, and when ctx ends. Run
// waits for fn, and then leaves. After it has joined again, the member has another token, and not
// the value that it had set.
//
// Run returns what fn returns while it is present, nil included; what fn returned, with the cause of
// ctx in its text, if ctx ended and fn failed with another error than that; the cause of ctx, which
// also matches the Err of ctx, if ctx ended otherwise; or an error that does not pass by itself, such as
// [backend.ErrDenied]. If fn panics, Run leaves and passes the panic on.
func (g *Group) Run(ctx context.Context, fn func(ctx context.Context, p *Presence) error) error {
	if fn == nil {
		return fmt.Errorf("group: %w call of Run: it was given no function", backend.ErrInvalid)
	}
	wait := backoff.New(ctx)
	for {
		p, err := g.Join(ctx)
		if err != nil {
			return ending.Ended(ctx, err)
		}
		began := time.Now()
		lost, err := p.during(ctx, fn)
		switch {
		case ctx.Err() != nil:
			return ending.Told(ctx, err, lost, elect.ErrLost)
		case lost == nil:
			return err
		}
		g.o.Logger.Warn("presence lost, joining again", "err", lost, "work", err)
		if time.Since(began) > wait.Max {
			wait.Reset()
		}
		if err := wait.After(ctx, lost); err != nil {
			return ending.Ended(ctx, err)
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
