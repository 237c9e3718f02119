package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Pin pins m and writes the header of its election in one step; see [backend.Session]. If m
// is pinned and the header is h already, Pin does nothing, whatever the version. It fails
// with [backend.ErrDenied] if another session joined m and m is not pinned.
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	_, err := ask[any](ctx, s, OpPin, m.Line, nil, func() *call {
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
