package consul

import (
	"context"
	"fmt"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// Leave deletes the member's key, if it is still the same entry; see [backend.Session].
// It blocks for one round trip, or for three if an operator has changed the key.
func (s *session) Leave(ctx context.Context, m backend.Member) error {
	key, err := s.b.o.memberPath(m)
	if err != nil {
		return err
	}
	s.leave(key, m.Position)
	return s.leaving.Do(ctx, m)
}

func (s *session) leaveAlone(ctx context.Context, m backend.Member) error {
	key := s.b.o.folder(m.Line) + m.Key
	ctx = urgent(ctx)
	// The index is a guess at first, because usually only the session changes a member.
	index, guessed := s.changeOf(key, m.Position), s.owns(m)
	err := s.retry(ctx, func(ctx context.Context) error {
		for {
			if !guessed {
				p, _, err := s.b.c.get(ctx, key)
				switch {
				case err != nil:
					return err
				case p == nil || p.CreateIndex != m.Position:
					return nil
				case p.Session != "" && !s.present().holds(p.Session):
					return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
				}
				index = p.ModifyIndex
			}
			guessed = false
			r, err := s.b.c.write(ctx, s.removal(m, key, index)...)
			if err != nil || len(r.errs) == 0 {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	s.gone(key, m.Position)
	return nil
}

// leaveTogether removes all of the members, if none has been changed by others; see [kit.Leaves]. If the
// answer is lost, it tries again: it is no error that there is no such key.
func (s *session) leaveTogether(ctx context.Context, ms []backend.Member) (gone []bool) {
	ctx = urgent(ctx)
	keys := make([]string, len(ms))
	for i, m := range ms {
		if !s.owns(m) {
			return nil
		}
		keys[i] = s.b.o.folder(m.Line) + m.Key
	}
	refused := true
	err := s.retry(ctx, func(ctx context.Context) error {
		var ops []*api.KVTxnOp // anew each time: a mark names the session of Consul, and that may be another one by now
		for i, m := range ms {
			ops = append(ops, s.removal(m, keys[i], s.changeOf(keys[i], m.Position))...)
		}
		if refused = len(ops) > maxOps; refused {
			return nil
		}
		r, err := s.b.c.write(ctx, ops...)
		refused = err == nil && len(r.errs) > 0
		return err
	})
	if err != nil || refused {
		return nil
	}
	gone = make([]bool, len(ms))
	for i, m := range ms {
		gone[i] = true
		s.gone(keys[i], m.Position)
	}
	return gone
}

// gone is called when the member at that position has gone from the key.
func (s *session) gone(key string, position uint64) {
	if was, stood := s.left(key, position); stood && was.doubtful {
		s.abandon(key)
	}
	s.tell(key)
}
