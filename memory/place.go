package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// WatchPlace blocks until m stands otherwise than p says; see [backend.Session].
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	after := new(backend.Place) // the call may outlive this one
	*after = *p
	own := topic{event: eventMember, name: m.Line, at: m.Position}
	others := make([]topic, 0, 2)
	if !after.First {
		others = append(others, topic{event: eventMember, name: m.Line, at: after.Ahead.Position})
	}
	if heedsHeader(after) {
		others = append(others, topic{event: eventRecord, name: m.Line})
	}
	now, err := ask[*backend.Place](ctx, s, OpWatchPlace, m.Line, nil, func() *call {
		return s.poll(OpWatchPlace, poll{topic: own, place: *after}, func() (any, error) { return s.b.c.store.watchPlace(m, after) }, others...)
	})
	*p = backend.Place{}
	if now != nil {
		*p = *now
	}
	return err
}

// heedsHeader reports whether WatchPlace of a member that stands so watches the header too (law L3).
func heedsHeader(p *backend.Place) bool { return p.First || p.Ahead.Pinned }
