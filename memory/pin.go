package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Pin makes m permanent and writes its election's record in one step; see
// [backend.Session]. Where m is pinned and the record is h already, nothing is
// left to do, whatever the version. A member that another session joined is
// refused with [backend.ErrDenied].
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	_, err := ask[any](ctx, s, OpPin, m.Line, func() *call {
		return s.send(OpPin, lostResolve, func(l *lease) (any, error) {
			err := s.b.c.store.pin(m, l.id, h, at)
			if err == nil {
				l.disown(m)
			}
			return nil, err
		})
	})
	return err
}
