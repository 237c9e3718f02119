package etcd

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
)

// Line returns the whole line in order; see [backend.Session].
func (s *session) Line(ctx context.Context, line string) (backend.Line, error) {
	l, _, err := s.line(ctx, line)
	return l, err
}

// line also returns the revision at which it has read.
func (s *session) line(ctx context.Context, line string) (l backend.Line, revision int64, err error) {
	resp, err := s.read(ctx,
		clientv3.OpGet(s.b.folder(line), clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
		clientv3.OpGet(s.b.record(line)),
	)
	if err != nil {
		return l, 0, err
	}
	for _, kv := range rangeOf(resp, 0).Kvs {
		if m, ok := s.b.memberOf(line, kv); ok {
			l.Members = append(l.Members, m)
		}
	}
	l.Version = versionOf(rangeOf(resp, 1))
	l.Header, err = headerOf(rangeOf(resp, 1))
	return l, resp.Header.Revision, err
}
