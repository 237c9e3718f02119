package postgres

import (
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Requests is how many requests the backend has sent.
func Requests(b *Backend) int64 { return b.wire.requests.Load() }

// Full reports whether all connections for requests are in use.
func Full(b *Backend) bool { return len(b.wire.room) == cap(b.wire.room) }

// Polled reports whether the session has noticed that no notices arrive.
func Polled(s backend.Session) bool {
	return s.(*kit.Adapter).Session.(*session).listener.polled.Load()
}

// Format is the one that this version needs.
const Format = format

// SchemaOf is Schema of a version whose formats these are.
func SchemaOf(name string, format, oldest int) (string, error) { return schemaOf(name, format, oldest) }

// SetFormat makes the process one of a version with another format.
func SetFormat(b *Backend, format int64) { b.format = format }

// Told reports whether the session has waiters, and the server tells them.
func Told(s backend.Session) bool {
	l := &s.(*kit.Adapter).Session.(*session).listener
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.served && !l.changed && l.waits > 0
}

// Quiet reports whether the server has to tell the session of nothing, as all that waits in it is far from the head.
func Quiet(s backend.Session) bool {
	l := &s.(*kit.Adapter).Session.(*session).listener
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.served && !l.listening && !l.changed
}
