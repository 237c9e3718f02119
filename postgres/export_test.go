package postgres

import (
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Requests is how many requests the backend has sent.
func Requests(b *Backend) int64 { return b.wire.requests.Load() }

// Polled reports whether the session has noticed that no notices arrive.
func Polled(s backend.Session) bool {
	return s.(*kit.Adapter).Session.(*session).listener.polled.Load()
}
