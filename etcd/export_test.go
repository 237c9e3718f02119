package etcd

import "github.com/succession-dev/succession/backend"

// Lease returns the ID of the lease that the session's members hang on.
func Lease(s backend.Session) int64 { return s.(*session).present().lease }
