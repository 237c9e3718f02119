package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Leave removes m; see [backend.Session]. A member that another session joined and
// that is not pinned is refused with [backend.ErrDenied].
func (s *session) Leave(ctx context.Context, m backend.Member) error { return s.leaving.Do(ctx, m) }

func (s *session) leaveAlone(ctx context.Context, m backend.Member) error {
	key := s.b.member(m)
	t := txn{
		when:      []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", int64(m.Position))},
		then:      []clientv3.Op{clientv3.OpDelete(key)},
		otherwise: []clientv3.Op{clientv3.OpGet(key, clientv3.WithKeysOnly())},
	}
	if !s.joined(m.Key) {
		t.when = append(t.when, clientv3.Compare(clientv3.LeaseValue(key), "=", 0))
	}
	resp, _, err := s.persist(ctx, t)
	if err != nil {
		return err
	}
	if !resp.Succeeded {
		if now := rangeOf(resp, 0); len(now.Kvs) > 0 && now.Kvs[0].CreateRevision == int64(m.Position) {
			return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
		}
	}
	s.gone(m)
	return nil
}

// leaveTogether removes all of the members, or tells which of them have gone already; see [kit.Leaves].
func (s *session) leaveTogether(ctx context.Context, ms []backend.Member) (gone []bool) {
	var t txn
	for _, m := range ms {
		key := s.b.member(m)
		t.when = append(t.when, clientv3.Compare(clientv3.CreateRevision(key), "=", int64(m.Position)))
		if !s.joined(m.Key) {
			t.when = append(t.when, clientv3.Compare(clientv3.LeaseValue(key), "=", 0))
		}
		t.then = append(t.then, clientv3.OpDelete(key))
		t.otherwise = append(t.otherwise, clientv3.OpGet(key, clientv3.WithKeysOnly()))
	}
	resp, _, err := s.persist(ctx, t)
	if err != nil {
		return nil
	}
	gone = make([]bool, len(ms))
	for i, m := range ms {
		gone[i] = resp.Succeeded
		if !resp.Succeeded {
			now := rangeOf(resp, i).Kvs
			gone[i] = len(now) == 0 || now[0].CreateRevision != int64(m.Position)
		}
		if gone[i] {
			s.gone(m)
		}
	}
	return gone
}

// gone is called when m has gone. It lets Join use the key again, unless another member
// has it already.
func (s *session) gone(m backend.Member) {
	s.mu.Lock()
	held := s.taken[m.Line+"/"+m.Key]
	its := held != nil && held.position == m.Position
	if its {
		held.position = 0
	}
	s.mu.Unlock()
	if its && s.free(m.Line, m.Key) {
		s.disown(m.Line, m.Key)
	}
	s.follow(m)
}

// owns reports whether this session has joined m, and has not removed it.
func (s *session) owns(m backend.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.taken[m.Line+"/"+m.Key]
	return held != nil && held.position == m.Position
}
