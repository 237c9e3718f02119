package kit

import (
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A Blind notes since when a session may not watch a member of its own, as when a right was taken away. If that lasts for a session
// time, the session must end: a leader whose member an operator removes would not be told, and would lead beside the next one. The
// zero Blind is that of a member that may be watched.
type Blind struct{ since time.Time }

// Watched notes how a watch of the member that began at begun has ended. It reports whether all watches have been denied for more
// than ttl. A watch that was denied only after so long a time was allowed at first.
func (b *Blind) Watched(begun time.Time, err error, ttl time.Duration) (tooLong bool) {
	switch {
	case !errors.Is(err, backend.ErrDenied):
		b.since = time.Time{}
	case b.since.IsZero(), time.Since(begun) > ttl:
		b.since = time.Now()
	}
	return !b.since.IsZero() && time.Since(b.since) > ttl
}
