package elect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// Run campaigns, and calls fn when this candidate leads. The context of fn ends when the
// term ends. If leadership is lost, Run waits for fn, logs a warning with its error, and campaigns again.
// It blocks until fn returns while leading, ctx ends, or an error does not pass by itself.
// It returns
//
//   - what fn returned, nil included, if fn returned while leading, or called
//     [Term.Resign] while leading, unless that matches [ErrStepDown];
//   - what fn returned, with the cause of ctx in its text, if ctx ended and fn failed with another
//     error than that;
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
	for {
		t, err := e.campaign(ctx, ctx, false)
		if err != nil {
			return alsoErr(ctx, err)
		}
		lost, err := t.lead(ctx, fn)
		stepped := lost == nil && errors.Is(err, ErrStepDown)
		switch {
		case lost == nil && !stepped:
			return err
		case ctx.Err() != nil:
			return t.told(ctx, err)
		case lost != nil && t.failed(ctx, err):
			e.o.Logger.Warn("leadership lost, and the work failed; joining again", "err", lost, "work", err)
		case lost != nil:
			e.o.Logger.Warn("leadership lost, joining again", "err", lost)
		default:
			e.o.Logger.Info("stepped down, joining again", "why", err)
		}
		if stepped = stepped || errors.Is(lost, ErrNotReady); time.Since(t.began) >= max(t.s.TTL(), time.Second) {
			starts.Reset()
		} else if stepped {
			err = cmp.Or(lost, err)
			if err := starts.After(ctx, err); err != nil {
				return err
			}
		}
	}
}

// lead calls fn, and resigns when fn has returned or panicked. If the term was lost
// before fn returned, lost says why. Otherwise lost is nil, and err is the result of Run.
// What happens while lead resigns changes neither. An fn that has resigned is treated
// like one that has returned.
func (t *Term) lead(ctx context.Context, fn func(ctx context.Context, t *Term) error) (lost, err error) {
	defer t.Resign(ctx)
	err = fn(t.ctx, t)
	if ctx.Err() != nil {
		return nil, t.told(ctx, err)
	}
	if lost = t.Check(); errors.Is(lost, ErrResigned) {
		lost = nil
	}
	return lost, err
}

// told returns the result of Run when ctx has ended and fn has returned err.
func (t *Term) told(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if t.failed(ctx, err) {
		return fmt.Errorf("%w; it was told to end: %v", err, cause)
	}
	return alsoErr(ctx, cause)
}

// failed reports whether err, which fn has returned, says more than that fn was told to end.
func (t *Term) failed(ctx context.Context, err error) bool {
	for _, echo := range []error{context.Canceled, ctx.Err(), context.Cause(ctx), context.Cause(t.ctx), ErrLost, ErrStepDown} {
		if errors.Is(err, echo) {
			return false
		}
	}
	return err != nil
}

// alsoErr returns err so that it also matches the Err of ctx, if ctx has ended.
func alsoErr(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, ctx.Err())
}
