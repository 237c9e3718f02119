// Package again is for callers of a session that wait, and ask again.
package again

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// withoutTTL is the interval of the slow re-check if sessions have no session time. The
// coordinator is then this machine, and a re-check takes microseconds.
const withoutTTL = time.Second

// Interval returns how long to wait before the next look: about a session time, with jitter, so
// that many who wait do not ask at one moment.
func Interval(s backend.Session, j backoff.Jitter) time.Duration {
	d := s.TTL()
	if d <= 0 {
		d = withoutTTL
	}
	return d + j.UpTo(d/4)
}

// ForAWhile calls watch with a context that ends after [Interval]. It then returns nil: a watch
// may die unseen, so the caller looks again.
func ForAWhile(ctx context.Context, s backend.Session, j backoff.Jitter, watch func(context.Context) error) error {
	again, cancel := context.WithTimeout(ctx, Interval(s, j))
	defer cancel()
	err := watch(again)
	if again.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// Passing reports whether the same call may succeed later, in the same session or in the next:
// the coordinator may come back, a new session and a new member replace those that were lost,
// somebody else may write no more at the same time, and a foreign client may take away the entry
// that has no order. All other errors need somebody to act.
func Passing(err error) bool {
	for _, passing := range []error{backend.ErrUnavailable, backend.ErrSessionEnded, backend.ErrNotMember, backend.ErrLine, backend.ErrVersion} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
