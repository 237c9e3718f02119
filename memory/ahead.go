package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Ahead says who stands just in front of m; see [backend.Session]. It is one request.
// Heartbeats are sent apart from it.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	return ask[backend.Place](ctx, s, OpAhead, m.Line, nil, func() *call {
		return s.send(OpAhead, lostAgain, func(*lease) (any, error) {
			return s.b.c.store.ahead(m)
		})
	})
}

// WatchPlace blocks until m stands otherwise than after says; see [backend.PlaceWatcher].
func (s *session) WatchPlace(ctx context.Context, m backend.Member, after backend.Place) (backend.Place, error) {
	own := topic{event: eventMember, name: m.Line, at: m.Position}
	other := topic{event: eventRecord, name: m.Line}
	if !after.First {
		other = topic{event: eventMember, name: m.Line, at: after.Ahead.Position}
	}
	return ask[backend.Place](ctx, s, OpWatchPlace, m.Line, nil, func() *call {
		return s.poll(OpWatchPlace, poll{topic: own, place: after}, func() (any, error) { return s.b.c.store.watchPlace(m, after) }, other)
	})
}
