package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Ahead says who stands just in front of m; see [backend.Session]. It is one
// transaction, however long the line is: the youngest member that is older than m,
// m itself, and the election's record. The member in front comes without its value,
// and without word of whether it is pinned: etcd looks through all that are older, and
// finds keys and revisions alone in memory (since 3.7, server/storage/mvcc).
func (s *session) Ahead(ctx context.Context, m backend.Member) (p backend.Place, err error) {
	err = s.call(ctx, "ahead", m.Line, func(ctx context.Context) error {
		own, heartbeat := s.b.member(m), s.proof.last()
		older := clientv3.WithMaxCreateRev(int64(m.Position) - 1)
		resp, err := s.read(ctx,
			clientv3.OpGet(s.b.folder(m.Line), append(clientv3.WithLastCreate(), older, clientv3.WithKeysOnly())...),
			clientv3.OpGet(own),
			clientv3.OpGet(s.b.record(m.Line)),
		)
		if err != nil {
			return err
		}
		ahead, self, record := rangeOf(resp, 0), rangeOf(resp, 1), rangeOf(resp, 2)
		if len(self.Kvs) == 0 || self.Kvs[0].CreateRevision != int64(m.Position) {
			s.follow(own)
			return backend.ErrNotMember
		}
		h, err := headerOf(record)
		if err != nil {
			return err
		}
		if p.Ahead, p.First, err = s.youngest(ctx, m, ahead); err != nil {
			return err
		}
		// Who sealed stands pinned at the head. Anybody else has lost the election to
		// another coordinator, even at the head once the seal's member was removed.
		if h.Sealed != "" && !(p.First && self.Kvs[0].Lease == 0) {
			return &backend.SealedError{To: h.Sealed}
		}
		s.settle(heartbeat, resp.Header.RaftTerm)
		switch {
		case p.First:
			p.Token = h.Fence + m.Position
		case p.Ahead.Position != h.Migration.Gate:
			return s.alive()
		}
		return s.lead(ctx, own) // which must not begin with a deadline that has passed
	})
	if err != nil {
		return backend.Place{}, err
	}
	return p, nil
}

// youngest returns the member that found holds, or that nobody is in front of m.
// Where found is no member but a record in the wrong place, or a member of an
// election with a longer name, it asks for all that stand in front.
func (s *session) youngest(ctx context.Context, m backend.Member, found *pb.RangeResponse) (ahead backend.Member, first bool, err error) {
	if len(found.Kvs) == 0 {
		return ahead, true, nil
	}
	if ahead, ok := s.b.memberOf(m.Line, found.Kvs[0]); ok {
		ahead.Pinned = false // not known
		return ahead, false, nil
	}
	resp, err := s.read(ctx, clientv3.OpGet(s.b.folder(m.Line), clientv3.WithPrefix(),
		clientv3.WithMaxCreateRev(int64(m.Position)-1),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)))
	if err != nil {
		return ahead, false, err
	}
	for _, kv := range rangeOf(resp, 0).Kvs {
		if ahead, ok := s.b.memberOf(m.Line, kv); ok {
			return ahead, false, nil
		}
	}
	return ahead, true, nil
}

// Line returns the whole line in order; see [backend.Session].
func (s *session) Line(ctx context.Context, line string) (l backend.Line, err error) {
	if err := backend.CheckName(line); err != nil {
		return l, wrap("line", line, err)
	}
	err = s.call(ctx, "line", line, func(ctx context.Context) error {
		resp, err := s.read(ctx,
			clientv3.OpGet(s.b.folder(line), clientv3.WithPrefix(),
				clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
			clientv3.OpGet(s.b.record(line)),
		)
		if err != nil {
			return err
		}
		for _, kv := range rangeOf(resp, 0).Kvs {
			if m, ok := s.b.memberOf(line, kv); ok {
				l.Members = append(l.Members, m)
			}
		}
		l.Version = versionOf(rangeOf(resp, 1))
		l.Header, err = headerOf(rangeOf(resp, 1))
		return err
	})
	if err != nil {
		return backend.Line{}, err
	}
	return l, nil
}

// Leave removes m; see [backend.Session]. A member that another session joined and
// that is not pinned is refused with [backend.ErrDenied].
func (s *session) Leave(ctx context.Context, m backend.Member) error {
	return s.call(ctx, "leave", m.Line, func(ctx context.Context) error {
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
	})
}

// gone lets Join use the key of a member that has gone.
func (s *session) gone(m backend.Member) {
	s.follow(s.b.member(m))
	s.mu.Lock()
	_, mine := s.taken[m.Line+"/"+m.Key]
	s.mu.Unlock()
	if mine && s.free(m.Line, m.Key) {
		s.disown(m.Line, m.Key)
	}
}

func rangeOf(resp *clientv3.TxnResponse, i int) *pb.RangeResponse {
	return resp.Responses[i].GetResponseRange()
}

// headerOf reads an election's own record.
func headerOf(r *pb.RangeResponse) (backend.Header, error) {
	if len(r.Kvs) == 0 {
		return backend.Header{}, nil
	}
	return backend.ParseHeader(r.Kvs[0].Value)
}

func versionOf(r *pb.RangeResponse) backend.Version {
	if len(r.Kvs) == 0 {
		return backend.Absent
	}
	return backend.Version(r.Kvs[0].ModRevision)
}
