package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Append adds an item at the end of the line; see [backend.Session]. An item has the key of a
// pinned member, with a revision in place of a lease. So etcd's own clients wait for
// it as for any member.
//
// The transaction names no lease. So if its answer is lost, it may take effect also when
// the session has ended.
func (s *session) Append(ctx context.Context, line, value string) (m backend.Member, err error) {
	if err := s.checkNesting(ctx, line); err != nil {
		return m, err
	}
	for {
		m = backend.Member{Line: line, Key: itemKey(s.b.log.floor()), Value: value, Pinned: true}
		key := s.b.member(m)
		resp, err := s.once(ctx, txn{
			when: []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)},
			then: []clientv3.Op{clientv3.OpPut(key, value)},
		})
		if err != nil {
			return backend.Member{}, err
		}
		if resp.Succeeded { // the number was drawn for the first time
			m.Position = uint64(resp.Header.Revision)
			return m, nil
		}
	}
}

// Remove removes the item m if by still stands; see [backend.Session].
func (s *session) Remove(ctx context.Context, m, by backend.Member) error {
	key := s.b.member(m)
	resp, err := s.guarded(ctx, txn{
		when: []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(key), "=", int64(m.Position)),
			clientv3.Compare(clientv3.LeaseValue(key), "=", 0),
		},
		then:      []clientv3.Op{clientv3.OpDelete(key)},
		otherwise: []clientv3.Op{clientv3.OpGet(key, clientv3.WithKeysOnly())},
	}, by, func(resp *clientv3.TxnResponse) bool {
		now := rangeOf(resp, 0).Kvs
		return len(now) > 0 && now[0].CreateRevision == int64(m.Position) && now[0].Lease == 0
	})
	if err != nil {
		return err
	}
	if !resp.Succeeded {
		if now := rangeOf(resp, 0).Kvs; len(now) > 0 && now[0].CreateRevision == int64(m.Position) {
			return fmt.Errorf("%w: member %s is no item", backend.ErrDenied, m.Key)
		}
	}
	s.gone(m)
	return nil
}
