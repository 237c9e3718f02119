package etcd

import (
	"cmp"
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// A view is a whole line at one revision, which many members share; see [kit.Lookout].
type view struct {
	keys      []*mvccpb.KeyValue // without values and leases, the oldest first
	header    backend.Header
	revision  int64
	heartbeat ack // the newest answered one before
	term      uint64
}

// view reads the line.
func (s *session) view(line string) (v view, err error) {
	v.heartbeat = s.proof.last()
	resp, err := s.read(s.Context(),
		clientv3.OpGet(s.b.folder(line), clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
		clientv3.OpGet(s.b.record(line)),
	)
	if err != nil {
		return v, err
	}
	v.keys, v.revision, v.term = rangeOf(resp, 0).Kvs, resp.Header.Revision, resp.Header.RaftTerm
	if len(v.keys) > 0 {
		if head, ok := s.b.memberOf(line, v.keys[0]); ok {
			s.sawHead(line, head.Position)
		}
	}
	v.header, err = headerOf(rangeOf(resp, 1))
	return v, err
}

// aheadIn says where m stands in the view. known is false if the view cannot decide it: a view does
// not show which members are pinned, or whether a key with a strange name belongs to a member.
func (s *session) aheadIn(ctx context.Context, m backend.Member, v view) (p backend.Place, known bool, err error) {
	i, stands := slices.BinarySearchFunc(v.keys, int64(m.Position), func(kv *mvccpb.KeyValue, position int64) int {
		return cmp.Compare(kv.CreateRevision, position)
	})
	switch {
	case !stands:
		s.follow(m)
		return p, true, backend.ErrNotMember
	case string(v.keys[i].Key) != s.b.member(m) || v.header.Sealed != "":
		return p, false, nil
	}
	var ahead *backend.Member
	if i > 0 {
		if ahead = s.b.nearest(m.Line, v.keys[i-1:i], false); ahead == nil {
			return p, false, nil
		}
	}
	p, err = s.place(ctx, m, ahead, v.header, v.heartbeat, v.term)
	return p, true, err
}
