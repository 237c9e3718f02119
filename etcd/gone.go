package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Gone blocks until m has gone; see [backend.Session].
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	key := s.b.member(m)
	return s.await(ctx, watching{
		create: watchKey(key, noPut),
		look: func(ctx context.Context) (bool, int64, error) {
			resp, err := s.read(ctx, clientv3.OpGet(key, clientv3.WithKeysOnly()))
			if err != nil {
				return false, 0, err
			}
			kvs := rangeOf(resp, 0).Kvs
			return len(kvs) == 0 || kvs[0].CreateRevision != int64(m.Position), resp.Header.Revision, nil
		},
		// m stood when look read, so any later deletion of the key is that of m.
		seen: func(*mvccpb.Event) bool { return true },
	})
}

// Joined blocks until somebody stands in the line; see [backend.Session].
func (s *session) Joined(ctx context.Context, line string) error {
	folder := s.b.folder(line)
	return s.await(ctx, watching{
		create: watchFolder(folder, noDelete),
		look: func(ctx context.Context) (bool, int64, error) {
			resp, err := s.read(ctx, clientv3.OpGet(folder, clientv3.WithPrefix()))
			if err != nil {
				return false, 0, err
			}
			for _, kv := range rangeOf(resp, 0).Kvs {
				if _, ok := s.b.memberOf(line, kv); ok {
					return true, 0, nil
				}
			}
			return false, resp.Header.Revision, nil
		},
	})
}
