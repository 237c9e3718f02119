package elect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/ending"
)

// Run campaigns, and calls fn when this candidate leads. The context of fn ends when the
// term ends. If leadership is lost, Run waits for fn, logs a warning with its error, and campaigns again.
// It blocks until fn returns while leading, ctx ends, or an error does not pass by itself.
// It returns
//
//   - what fn returned, nil included, if fn returned while leading, or called
//     [Term.Resign] while leading, unless that matches [ErrStepDown];
//   - what fn returned, with the cause of ctx in its text, if ctx ended and fn failed with another
//     error than that. Of an error of several parts, such as that of [errors.Join], those that only say
//     that fn was to end are left out;
//   - the cause of ctx, if ctx ended otherwise. It also matches the Err of ctx, such as [context.Canceled];
//   - the error of [Election.Campaign] otherwise.
//
// An fn that wants to give leadership away, and to stand in line again at the end, returns
// [ErrStepDown], or an error that wraps it and says why. If a term ends so, or because the
// candidate is not ready ([Options] Ready), and lasted less than about a session time, Run pauses
// before it joins again: for up to a second at first, then longer each time, up to a minute, until
// a term lasts. So candidates that cannot work do not take turns without end.
//
// Before Run returns, fn has returned and the member has left the line. Leaving takes at
// most [Options] ResignTimeout; what is not done by then is tried again in the
// background, as [Term.Resign] says. If fn panics, Run resigns and passes the panic on.
// Each call of Run joins the line as another member.
func (e *Election) Run(ctx context.Context, fn func(ctx context.Context, t *Term) error) error {
	if fn == nil {
		return fmt.Errorf("elect: %w call of Run: it was given no function", backend.ErrInvalid)
	}
	starts := backoff.Backoff{Min: time.Second, Max: time.Minute, Jitter: backoff.JitterOf(ctx)}
	var pause func() error
	for {
		t, err := e.campaign(ctx, ctx, false, pause)
		if err != nil {
			return ending.Ended(ctx, err)
		}
		lost, ended, err := t.lead(ctx, fn)
		stepped := lost == nil && errors.Is(err, ErrStepDown)
		switch {
		case ended, ctx.Err() != nil && (lost != nil || stepped):
			return ending.Told(ctx, err, t.orders()...)
		case lost == nil && !stepped:
			return err
		case lost != nil && ending.Failed(ctx, err, t.orders()...):
			e.o.Logger.Warn("leadership lost, and the work failed; joining again", "err", lost, "work", err)
		case lost != nil:
			e.o.Logger.Warn("leadership lost, joining again", "err", lost)
		default:
			e.o.Logger.Info("stepped down, joining again", "why", err)
		}
		pause = nil
		if stepped = stepped || errors.Is(lost, ErrNotReady); time.Since(t.began) >= max(t.s.TTL(), time.Second) {
			starts.Reset()
		} else if stepped {
			pause = func() error { return starts.After(ctx, cmp.Or(lost, err)) }
		}
	}
}

// lead calls fn, and resigns when fn has returned or panicked. err is what fn has returned. If ctx had
// ended by then, ended is true. Otherwise, if the term was lost, lost says why. What happens while lead
// resigns changes none of them. An fn that has resigned is treated like one that has returned.
func (t *Term) lead(ctx context.Context, fn func(ctx context.Context, t *Term) error) (lost error, ended bool, err error) {
	defer t.Resign(ctx)
	err = fn(t.ctx, t)
	if ctx.Err() != nil {
		return nil, true, err
	}
	if lost = t.Check(); errors.Is(lost, ErrResigned) {
		lost = nil
	}
	return lost, false, err
}

// orders are the errors by which an fn of t says that it ends because it was told to, besides those of Run's context.
func (t *Term) orders() []error { return []error{context.Cause(t.ctx), ErrLost, ErrStepDown} }
