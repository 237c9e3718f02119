package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Append adds an item at the end of the line; see [backend.Session].
func (s *session) Append(ctx context.Context, line, value string) (backend.Member, error) {
	return ask[backend.Member](ctx, s, OpAppend, line, backend.CheckValue(value), func() *call {
		return s.send(OpAppend, lostUnknown, func(*lease) (any, error) {
			return s.b.c.store.join(backend.Member{Line: line, Value: value, Pinned: true}, 0), nil
		})
	})
}

// Remove removes the item m if by still stands; see [backend.Session].
func (s *session) Remove(ctx context.Context, m, by backend.Member) error {
	_, err := ask[any](ctx, s, OpRemove, m.Line, backend.CheckName(by.Line), func() *call {
		return s.send(OpRemove, lostUnknown, func(*lease) (any, error) {
			return nil, s.b.c.store.removeItem(m, by)
		})
	})
	return err
}

// Free returns the first item that nobody claims; see [backend.Session].
func (s *session) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	return ask[backend.Member](ctx, s, OpFree, items, backend.CheckName(claims), func() *call {
		return s.send(OpFree, lostAgain, func(*lease) (any, error) {
			at := s.b.view()
			m, free, err := kit.FirstFree(at.members(items), at.members(claims))
			if err == nil && !free {
				err = backend.ErrTaken
			}
			return m, err
		})
	})
}

// Claim adds a member that claims the item; see [backend.Session].
func (s *session) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	m := backend.Member{Line: line, Value: value, Shared: true}
	return s.joinIf(ctx, OpClaim, m, record, kit.CheckClaim(value, item), func(st *store) error {
		if _, _, stands := st.find(item); !stands || kit.ClaimedBefore(backend.Member{Value: value, Position: st.index + 1, Shared: true}, st.members(line)) {
			return backend.ErrTaken
		}
		return nil
	})
}
