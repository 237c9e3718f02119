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
