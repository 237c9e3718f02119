package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Append adds an item at the end of the line; see [backend.Items].
func (s *session) Append(ctx context.Context, line, value string) (backend.Member, error) {
	return ask[backend.Member](ctx, s, OpAppend, line, backend.CheckValue(value), func() *call {
		return s.send(OpAppend, lostUnknown, func(*lease) (any, error) {
			return s.b.c.store.join(backend.Member{Line: line, Value: value, Pinned: true}, 0), nil
		})
	})
}

// Remove removes the item m if by still stands; see [backend.Items].
func (s *session) Remove(ctx context.Context, m, by backend.Member) error {
	_, err := ask[any](ctx, s, OpRemove, m.Line, backend.CheckName(by.Line), func() *call {
		return s.send(OpRemove, lostUnknown, func(*lease) (any, error) {
			return nil, s.b.c.store.removeItem(m, by)
		})
	})
	return err
}
