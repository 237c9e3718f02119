package etcd

import (
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Ahead says who stands just in front of m; see [backend.Session]. It is one transaction,
// and its answer has the same size however long the line is: it reads the two youngest keys
// that are older than m, m itself, and the header. The second of the two tells whether the
// first is the head of the line. Ahead does not tell the value of the member in front, nor
// whether that is pinned: etcd looks through all older keys, and finds keys and revisions
// alone in memory (since 3.7, server/storage/mvcc). If the youngest key is not that of a
// member, a second transaction reads all older keys. For a shared member the first one does.
func (s *session) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	begun := time.Now()
	p, _, err := s.ahead(ctx, m)
	s.watched(ctx, m, begun, err)
	return p, err
}

// ahead also returns the revision at which it has read.
func (s *session) ahead(ctx context.Context, m backend.Member) (p backend.Place, revision int64, err error) {
	if isShared(m.Key) {
		return s.aheadAlone(ctx, m)
	}
	v, alone, err := s.lookout.Enter(ctx, m.Line)
	if err != nil {
		return p, 0, err
	}
	if alone {
		defer s.lookout.Leave(m.Line)
		return s.aheadAlone(ctx, m)
	}
	p, known, err := s.aheadIn(ctx, m, v)
	if !known {
		return s.aheadAlone(ctx, m)
	}
	return p, v.revision, err
}

// aheadAlone is ahead for m alone.
func (s *session) aheadAlone(ctx context.Context, m backend.Member) (p backend.Place, revision int64, err error) {
	older := clientv3.WithMaxCreateRev(int64(m.Position) - 1)
	look := func(which ...clientv3.OpOption) (ack, *clientv3.TxnResponse, error) {
		return s.ask(ctx, m, clientv3.OpGet(s.b.folder(m.Line), append(which, older, clientv3.WithPrefix())...))
	}
	all := []clientv3.OpOption{clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend)}
	which, shared := append(slices.Clone(all), clientv3.WithLimit(2), clientv3.WithKeysOnly()), isShared(m.Key)
	if shared {
		which = all
	}
	heartbeat, resp, err := look(which...)
	if err != nil {
		return p, 0, err
	}
	found := rangeOf(resp, 2).Kvs
	if !shared && len(found) > 0 && s.b.nearest(m.Line, found[:1], shared) == nil {
		// The youngest key is a record in the wrong place, a member of an election with a
		// longer name, or a member whose name does not tell. All three are read again, not
		// the line alone: a line that is read later than the header may lack a member that
		// has raised the fence, led, and gone. Then m would get a smaller token.
		if heartbeat, resp, err = look(all...); err != nil {
			return p, 0, err
		}
		found = rangeOf(resp, 2).Kvs
	}
	ahead := s.b.nearest(m.Line, found, shared)
	switch {
	case shared: // others that are shared may stand in front
	case ahead == nil:
		s.sawHead(m.Line, m.Position)
	case len(found) == 1:
		s.sawHead(m.Line, ahead.Position)
	}
	p, err = s.judge(ctx, m, ahead, heartbeat, resp)
	return p, resp.Header.Revision, err
}

// ask reads m and the header of its election, for [session.judge], and whatever else is
// given, at one revision. It also returns the newest answered heartbeat of before.
func (s *session) ask(ctx context.Context, m backend.Member, more ...clientv3.Op) (ack, *clientv3.TxnResponse, error) {
	heartbeat := s.proof.last()
	resp, err := s.read(ctx, append([]clientv3.Op{clientv3.OpGet(s.b.member(m)), clientv3.OpGet(s.b.record(m.Line))}, more...)...)
	return heartbeat, resp, err
}

// judge decides where m stands, from what [session.ask] has read and from who stood in front
// of m then. It returns when the session's deadline is one that a leader can have, if m is
// first.
func (s *session) judge(ctx context.Context, m backend.Member, ahead *backend.Member, heartbeat ack, resp *clientv3.TxnResponse) (p backend.Place, err error) {
	self, record := rangeOf(resp, 0), rangeOf(resp, 1)
	if len(self.Kvs) == 0 || self.Kvs[0].CreateRevision != int64(m.Position) {
		s.follow(m)
		return p, backend.ErrNotMember
	}
	h, err := headerOf(record)
	if err != nil {
		return p, err
	}
	m.Pinned = self.Kvs[0].Lease == 0
	return s.place(ctx, m, ahead, h, heartbeat, resp.Header.RaftTerm)
}

// place is judge for a header that has been parsed, and a member that stands.
func (s *session) place(ctx context.Context, m backend.Member, ahead *backend.Member, h backend.Header, heartbeat ack, term uint64) (backend.Place, error) {
	p, err := kit.PlaceOf(m, ahead, h)
	if err != nil {
		return p, err
	}
	s.settle(heartbeat, term)
	if !p.First && p.Ahead.Position != h.Gate {
		return p, s.Alive()
	}
	return p, s.lead(ctx, m) // which must not begin with a deadline that has passed
}

// nearest returns the first among the keys that is that of a member that a member waits for,
// which is shared or not; or nil. The youngest key comes first.
func (b *Backend) nearest(line string, keys []*mvccpb.KeyValue, shared bool) *backend.Member {
	for _, kv := range keys {
		if m, ok := b.memberOf(line, kv); ok && !(shared && m.Shared) {
			m.Value, m.Pinned = "", false // not known of keys alone
			return &m
		}
	}
	return nil
}
