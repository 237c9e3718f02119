package consul

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is the pause between attempts: it doubles up to a bound, with full
// jitter. It counts from the beginning of the attempt, so that one which took long
// to fail is followed by the next.
type backoff struct {
	most  time.Duration
	next  time.Duration
	began time.Time
}

const minBackoff = 20 * time.Millisecond

// backoff returns one whose pauses are short beside a session's time.
func (o *Options) backoff() backoff {
	return backoff{most: max(minBackoff, min(time.Second, o.TTL/15))}
}

// begin notes that an attempt begins.
func (b *backoff) begin() { b.began = time.Now() }

// reset notes that an attempt has succeeded.
func (b *backoff) reset() { b.next = 0 }

// pause returns the time until the next attempt.
func (b *backoff) pause() time.Duration {
	b.next = min(max(2*b.next, minBackoff), b.most)
	return max(0, b.next/2+rand.N(b.next/2+1)-time.Since(b.began))
}

// sleep waits until the next attempt, or returns the cause of ctx when that ends
// first.
func (b *backoff) sleep(ctx context.Context) error {
	t := time.NewTimer(b.pause())
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
