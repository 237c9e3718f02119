package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Ahead says who stands just in front of m; see [backend.Session]. It is one transaction,
// however long the line is: it reads the youngest key that is older than m, m itself, and
// the header. It does not tell the value of the member in front, nor whether that is
// pinned: etcd looks through all older keys, and finds keys and revisions alone in memory
// (since 3.7, server/storage/mvcc). If the youngest key is not that of a member, a second
// transaction reads all older keys. For a shared member the first one does.
func (s *session) Ahead(ctx context.Context, m backend.Member) (p backend.Place, err error) {
	own, heartbeat := s.b.member(m), s.proof.last()
	older := clientv3.WithMaxCreateRev(int64(m.Position) - 1)
	look := func(which ...clientv3.OpOption) (*clientv3.TxnResponse, error) {
		return s.read(ctx,
			clientv3.OpGet(s.b.folder(m.Line), append(which, older)...),
			clientv3.OpGet(own),
			clientv3.OpGet(s.b.record(m.Line)),
		)
	}
	all := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)}
	which, shared := append(clientv3.WithLastCreate(), clientv3.WithKeysOnly()), isShared(m.Key)
	if shared {
		which = all
	}
	resp, err := look(which...)
	if err != nil {
		return p, err
	}
	ahead := s.b.youngest(m.Line, rangeOf(resp, 0), shared)
	if ahead == nil && !shared && len(rangeOf(resp, 0).Kvs) > 0 {
		// The key is a record in the wrong place, or a member of an election with a
		// longer name. All three are read again, not the line alone: a line that is
		// read later than the header may lack a member that has raised the fence,
		// led, and gone. Then m would get a smaller token.
		if resp, err = look(all...); err != nil {
			return p, err
		}
		ahead = s.b.youngest(m.Line, rangeOf(resp, 0), false)
	}
	self, record := rangeOf(resp, 1), rangeOf(resp, 2)
	if len(self.Kvs) == 0 || self.Kvs[0].CreateRevision != int64(m.Position) {
		s.follow(m)
		return p, backend.ErrNotMember
	}
	h, err := headerOf(record)
	if err != nil {
		return p, err
	}
	m.Pinned = self.Kvs[0].Lease == 0
	if p, err = backend.PlaceOf(m, ahead, h); err != nil {
		return p, err
	}
	s.settle(heartbeat, resp.Header.RaftTerm)
	if !p.First && p.Ahead.Position != h.Migration.Gate {
		return p, s.Alive()
	}
	return p, s.lead(ctx, m) // which must not begin with a deadline that has passed
}

// youngest returns the first among what was found that a member waits for, which is shared or
// not, or nil. The youngest key comes first.
func (b *Backend) youngest(line string, found *pb.RangeResponse, shared bool) *backend.Member {
	for _, kv := range found.Kvs {
		if m, ok := b.memberOf(line, kv); ok && !(shared && m.Shared) {
			m.Value, m.Pinned = "", false // not known of keys alone
			return &m
		}
	}
	return nil
}
