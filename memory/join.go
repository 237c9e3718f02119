package memory

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

// Join adds a member at the end of the line; see [backend.Session]. If the answer is lost,
// the client sends the call again under its number, under which the coordinator remembers
// the answer, and tells neither place nor record. If ctx ends first, the session removes the member as soon
// as it learns of it.
func (s *session) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.join(ctx, backend.Member{Line: line, Value: value}, record)
}

// JoinShared is Join for a shared member; see [backend.Session].
func (s *session) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.join(ctx, backend.Member{Line: line, Value: value, Shared: true}, record)
}

func (s *session) join(ctx context.Context, m backend.Member, record string) (backend.Joined, error) {
	return s.joinIf(ctx, OpJoin, m, record, backend.CheckValue(m.Value), func(*store) error { return nil })
}

// joinIf joins if may returns nil, which sees the store just before.
func (s *session) joinIf(ctx context.Context, op Op, m backend.Member, record string, invalid error, may func(*store) error) (backend.Joined, error) {
	return ask[backend.Joined](ctx, s, op, m.Line, invalid, func() *call {
		first := false
		cl := s.send(op, lostResolve, func(l *lease) (any, error) {
			if err := s.b.c.store.nests(m.Line); err != nil {
				return nil, err
			}
			if err := may(&s.b.c.store); err != nil {
				return nil, err
			}
			first = true
			m := s.b.c.store.join(m, l.id)
			l.members = append(l.members, m)
			return m, nil
		})
		once := cl.apply
		cl.apply = func() (any, error) {
			first = false
			m, err := once()
			if err != nil {
				return nil, err
			}
			j := backend.Joined{Member: m.(backend.Member)}
			if first && record != "" {
				s.b.c.store.tell(&j, record)
			}
			return j, nil
		}
		cl.then = func(v any, err error) {
			if cl.abandoned && err == nil {
				s.leave(v.(backend.Joined).Member)
			}
		}
		return cl
	})
}

// tell adds to j where its member stands, and the record.
func (st *store) tell(j *backend.Joined, record string) {
	if p, err := st.ahead(j.Member); err == nil {
		j.Place = &p
	}
	r := st.get(record)
	j.Record = &r
}
