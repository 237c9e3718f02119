// Package backoff waits between attempts, with pauses that grow and with jitter.
package backoff

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A Backoff makes the pauses between attempts. The first pause is at most Min, and each
// further one may be twice as long, up to Max. Jitter keeps callers that failed together from
// trying again together. A Backoff is for one goroutine at a time.
type Backoff struct {
	Min, Max time.Duration
	Jitter   Jitter
	last     time.Duration
	why      error // why the last attempt failed; nil if none has since Reset
}

// New returns a Backoff for requests to a coordinator: from 50 ms to two seconds, with the
// jitter of ctx ([JitterOf]).
func New(ctx context.Context) Backoff {
	return Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second, Jitter: JitterOf(ctx)}
}

// Next returns the next pause. Jitter draws it between half its length and the whole.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.Min), b.Max)
	return b.last/2 + b.Jitter.UpTo(b.last/2)
}

// Sleep waits for the next pause. If ctx ends first, it returns the cause of ctx.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Failed is [Backoff.Next] after an attempt that failed with why.
func (b *Backoff) Failed(why error) time.Duration {
	b.why = why
	return b.Next()
}

// After waits for the next pause, after an attempt that failed with why. If ctx ends
// first, it returns [Backoff.Cause].
func (b *Backoff) After(ctx context.Context, why error) error {
	if Sleep(ctx, b.Failed(why)) != nil {
		return b.Cause(ctx)
	}
	return nil
}

// Cause returns the cause of ctx, which has ended. If an attempt has failed since Reset, the error
// also says why the last one did, so that the caller who has set a time limit learns what took so
// long. If it failed with [backend.ErrUnavailable], the error matches that too. It matches nothing else that an attempt has returned, because the
// attempt was repeated, and may have been about something that the caller does not know, such as another member.
func (b *Backoff) Cause(ctx context.Context) error {
	if b.why == nil {
		return context.Cause(ctx)
	}
	return &cutOff{context.Cause(ctx), b.why}
}

// A cutOff is the error of attempts that a context has ended.
type cutOff struct{ cause, why error }

func (e *cutOff) Error() string { return fmt.Sprintf("%v (before that: %v)", e.cause, e.why) }
func (e *cutOff) Unwrap() error { return e.cause }
func (e *cutOff) Is(target error) bool {
	return target == backend.ErrUnavailable && errors.Is(e.why, target)
}

// Reset makes the pauses begin again with Min. It is for after an attempt that succeeded.
func (b *Backoff) Reset() { b.last, b.why = 0, nil }

// Sleep waits for d. If ctx ends first, it returns the cause of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
