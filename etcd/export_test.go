package etcd

import (
	"time"

	"github.com/succession-dev/succession/backend"
)

// Lease returns the ID of the lease that the session's members hang on.
func Lease(s backend.Session) int64 { return s.(*session).present().lease }

// Hurry has b, which has no session yet, believe that etcd's servers work off a request
// within two election timeouts.
func Hurry(b *Backend) time.Duration {
	b.queueing = 0
	return b.o.TTL * 4 / 3
}
