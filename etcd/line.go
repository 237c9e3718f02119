package etcd

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Ahead says who stands just in front of m; see [backend.Session]. It is one
// transaction, however long the line is: the youngest key that is older than m,
// m itself, and the election's record. The member in front comes without its value,
// and without word of whether it is pinned: etcd looks through all that are older, and
// finds keys and revisions alone in memory (since 3.7, server/storage/mvcc). Where the
// youngest is no member, a second such transaction reads all that are older.
func (s *session) Ahead(ctx context.Context, m backend.Member) (p backend.Place, err error) {
	err = s.call(ctx, "ahead", m.Line, func(ctx context.Context) error {
		own, heartbeat := s.b.member(m), s.proof.last()
		older := clientv3.WithMaxCreateRev(int64(m.Position) - 1)
		look := func(which ...clientv3.OpOption) (*clientv3.TxnResponse, error) {
			return s.read(ctx,
				clientv3.OpGet(s.b.folder(m.Line), append(which, older)...),
				clientv3.OpGet(own),
				clientv3.OpGet(s.b.record(m.Line)),
			)
		}
		resp, err := look(append(clientv3.WithLastCreate(), clientv3.WithKeysOnly())...)
		if err != nil {
			return err
		}
		ahead := s.b.youngest(m.Line, rangeOf(resp, 0))
		if ahead == nil && len(rangeOf(resp, 0).Kvs) > 0 {
			// It is a record in the wrong place, or a member of an election with a longer name.
			// A line that is read later than the fence may lack one who has raised it, led, and
			// gone, and m would get a smaller token. So all three are read again.
			resp, err = look(clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend))
			if err != nil {
				return err
			}
			ahead = s.b.youngest(m.Line, rangeOf(resp, 0))
		}
		self, record := rangeOf(resp, 1), rangeOf(resp, 2)
		if len(self.Kvs) == 0 || self.Kvs[0].CreateRevision != int64(m.Position) {
			s.follow(m)
			return backend.ErrNotMember
		}
		h, err := headerOf(record)
		if err != nil {
			return err
		}
		m.Pinned = self.Kvs[0].Lease == 0
		if p, err = backend.PlaceOf(m, ahead, h); err != nil {
			return err
		}
		s.settle(heartbeat, resp.Header.RaftTerm)
		if !p.First && p.Ahead.Position != h.Migration.Gate {
			return s.alive()
		}
		return s.lead(ctx, m) // which must not begin with a deadline that has passed
	})
	if err != nil {
		return backend.Place{}, err
	}
	return p, nil
}

// youngest returns the first member among found; nil where there is none.
func (b *Backend) youngest(line string, found *pb.RangeResponse) *backend.Member {
	for _, kv := range found.Kvs {
		if m, ok := b.memberOf(line, kv); ok {
			m.Value, m.Pinned = "", false // not known of keys alone
			return &m
		}
	}
	return nil
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

// gone lets Join use the key of a member that has gone, unless another has it already.
func (s *session) gone(m backend.Member) {
	s.follow(m)
	s.mu.Lock()
	held := s.taken[m.Line+"/"+m.Key]
	its := held != nil && held.position == m.Position
	s.mu.Unlock()
	if its && s.free(m.Line, m.Key) {
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
