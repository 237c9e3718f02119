package consul

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// Append adds an item at the end of the line; see [backend.Session]. One transaction creates
// its key, locked by the session, and unlocks it: so a late request, after the end of the session,
// does nothing. Append blocks for about a round trip.
func (s *session) Append(ctx context.Context, line, value string) (backend.Member, error) {
	m := backend.Member{Line: line, Key: s.nextKey(false), Value: value, Pinned: true}
	key := s.b.o.folder(line) + m.Key
	err := s.write(ctx, func(ctx context.Context) (err error) {
		session := s.present().id
		m.Position, err = s.create(ctx, key,
			&api.KVTxnOp{Verb: api.KVLock, Key: key, Session: session},
			&api.KVTxnOp{Verb: api.KVUnlock, Key: key, Value: []byte(value), Session: session})
		return err
	})
	if err != nil {
		return backend.Member{}, err
	}
	s.b.history.saw(m.Position, key)
	return m, nil
}

// Remove deletes the item's key if by still stands, in one transaction; see
// [backend.Session]. It blocks for one round trip, and for a few if an entry has been changed
// since its member joined, as by Pin.
func (s *session) Remove(ctx context.Context, m, by backend.Member) error {
	key, err := s.b.o.memberPath(m)
	if err != nil {
		return err
	}
	index := m.Position // a guess at first: nobody changes an item
	for {
		_, err := s.guarded(ctx, &backend.If{Member: by}, key,
			&api.KVTxnOp{Verb: api.KVCheckSession, Key: key}, // checks that no session has locked it
			&api.KVTxnOp{Verb: api.KVDeleteCAS, Key: key, Index: index})
		var now *api.KVPair // nil if the item was removed
		if errors.Is(err, backend.ErrVersion) {
			now, err = s.standing(ctx, key, m)
		}
		switch {
		case err != nil:
			return err
		case now == nil:
			s.gone(key, m.Position)
			return nil
		case now.Session != "":
			return fmt.Errorf("%w: member %s is no item", backend.ErrDenied, m.Key)
		case now.ModifyIndex == index:
			return fmt.Errorf("%w: the item's entry could not be checked", backend.ErrUnavailable)
		}
		index = now.ModifyIndex
	}
}
