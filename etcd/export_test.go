package etcd

import "github.com/succession-dev/succession/backend"

// Lease returns the ID of the session's lease.
func Lease(s backend.Session) int64 { return s.(*session).id }
