package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Gone blocks until m has gone; see [backend.Session].
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	key, begun := s.b.member(m), time.Now()
	err := s.await(ctx, watching{
		create: []*pb.WatchCreateRequest{watchKey(key, noPut)},
		look: func(ctx context.Context) (bool, int64, error) {
			resp, err := s.read(ctx, clientv3.OpGet(key, clientv3.WithKeysOnly()))
			if err != nil {
				return false, 0, err
			}
			kvs := rangeOf(resp, 0).Kvs
			return len(kvs) == 0 || kvs[0].CreateRevision != int64(m.Position), resp.Header.Revision, nil
		},
		// m stood when look read, so any later deletion of the key is that of m.
		seen: func(*mvccpb.Event) verdict { return done },
	})
	s.watched(ctx, m, begun, err)
	return err
}

// WatchLine blocks until other members stand in the line than in after; see
// [backend.Session]. Each join and each exit makes it read the line again.
func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (l backend.Line, err error) {
	err = s.await(ctx, watching{
		create: []*pb.WatchCreateRequest{watchFolder(s.b.folder(line))},
		look: func(ctx context.Context) (bool, int64, error) {
			var resp *clientv3.TxnResponse
			if l, resp, err = s.line(ctx, line, 0); err != nil {
				return false, 0, err
			}
			return !kit.SameMembers(l, after), resp.Header.Revision, nil
		},
	})
	return l, err
}
