// Package backoff waits between attempts.
package backoff

import (
	"context"
	"fmt"
	"time"
)

// A Backoff is a pause before the next attempt: the first is about Min, each further
// one twice as long up to Max, and jitter keeps many who failed together from coming
// back together. It is for one goroutine at a time.
type Backoff struct {
	Min, Max time.Duration
	Jitter   Jitter
	last     time.Duration
	why      error // the last attempt failed, since Reset
}

// New returns the pauses between the attempts of one goroutine at what talks to a
// coordinator: from 50 ms to two seconds, with the jitter of ctx.
func New(ctx context.Context) Backoff {
	return Backoff{Min: 50 * time.Millisecond, Max: 2 * time.Second, Jitter: JitterOf(ctx)}
}

// Next returns the next pause: between a half and the whole of its length.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.Min), b.Max)
	return b.last/2 + b.Jitter.UpTo(b.last/2)
}

// Sleep waits for the next pause. It returns the cause of ctx when that ends first.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Failed is Next after an attempt that failed with why.
func (b *Backoff) Failed(why error) time.Duration {
	b.why = why
	return b.Next()
}

// After waits for the next pause after an attempt that failed with why. When ctx ends
// first, it returns what Cause does.
func (b *Backoff) After(ctx context.Context, why error) error {
	if Sleep(ctx, b.Failed(why)) != nil {
		return b.Cause(ctx)
	}
	return nil
}

// Cause returns the cause of ctx, which has ended, and with it why the last attempt since
// Reset failed, if one did: whoever set a time limit wants to know what took so long.
func (b *Backoff) Cause(ctx context.Context) error {
	if b.why == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (before that: %w)", context.Cause(ctx), b.why)
}

// Reset begins again with Min: an attempt has succeeded.
func (b *Backoff) Reset() { b.last, b.why = 0, nil }

// Sleep waits for d. It returns the cause of ctx when that ends first.
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
