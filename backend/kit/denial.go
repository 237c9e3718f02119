package kit

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A Denial notes since when a session is denied what it cannot do without, as when a right was taken away: to watch a member of its own,
// or to remove one that no caller knows of. The right may come back. But if the denial lasts for a session time, the session must end: a
// leader whose member an operator removes would not be told, and would lead beside the next one; and others would wait behind a member that
// nobody removes. The zero Denial is that of what is allowed.
type Denial struct{ since time.Time }

// Lasts notes how an attempt that began at begun has ended. It reports whether all attempts have been denied for more than ttl. An attempt
// that took longer than ttl was allowed at first. A shorter one whose caller has gone, so that ctx has ended, says nothing.
func (d *Denial) Lasts(ctx context.Context, begun time.Time, err error, ttl time.Duration) bool {
	denied := errors.Is(err, backend.ErrDenied)
	if time.Since(begun) > ttl || !denied && ctx.Err() == nil {
		d.since = time.Time{}
	}
	if denied && d.since.IsZero() {
		d.since = time.Now()
	}
	return denied && time.Since(d.since) > ttl
}
