package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Join adds a member at the end of the line; see [backend.Session]. If the answer is lost,
// the client sends the call again under its number, under which the coordinator remembers
// the answer. If ctx ends first, the session removes the member as soon as it learns of it.
func (s *session) Join(ctx context.Context, line, value string) (backend.Member, error) {
	return s.join(ctx, backend.Member{Line: line, Value: value})
}

// JoinShared is Join for a shared member; see [backend.Sharer].
func (s *session) JoinShared(ctx context.Context, line, value string) (backend.Member, error) {
	return s.join(ctx, backend.Member{Line: line, Value: value, Shared: true})
}

func (s *session) join(ctx context.Context, m backend.Member) (backend.Member, error) {
	return ask[backend.Member](ctx, s, OpJoin, m.Line, backend.CheckValue(m.Value), func() *call {
		cl := s.send(OpJoin, lostResolve, func(l *lease) (any, error) {
			m := s.b.c.store.join(m, l.id)
			l.members = append(l.members, m)
			return m, nil
		})
		cl.then = func(v any, err error) {
			if cl.abandoned && err == nil {
				s.leave(v.(backend.Member))
			}
		}
		return cl
	})
}
