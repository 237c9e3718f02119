package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Leave removes m; see [backend.Session]. It fails with [backend.ErrDenied] if another
// session joined m and m is not pinned.
func (s *session) Leave(ctx context.Context, m backend.Member) error {
	_, err := ask[any](ctx, s, OpLeave, m.Line, nil, func() *call { return s.leave(m) })
	return err
}

func (s *session) leave(m backend.Member) *call {
	return s.send(OpLeave, lostResolve, func(l *lease) (any, error) {
		return nil, s.b.c.leave(m, l)
	})
}
