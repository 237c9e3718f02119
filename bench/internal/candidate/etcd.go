package candidate

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// newConcurrency elects with etcd's own recipe. Its documentation says of Session.Done: "a
// channel that closes when the lease is orphaned, expires, or is otherwise no longer being
// refreshed".
func newConcurrency(_ context.Context, s Settings) (elector, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: s.Addresses, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (term, error) {
		session, err := concurrency.NewSession(client, concurrency.WithTTL(int(s.Session/time.Second)))
		if err != nil {
			return term{}, err
		}
		// Close revokes the lease. Where it cannot, the lease ends by itself.
		release := func() { _ = session.Close() }
		if err := concurrency.NewElection(session, s.Election).Campaign(ctx, s.ID); err != nil {
			release()
			return term{}, err
		}
		return term{leads: func() bool { return open(session.Done()) }, release: release}, nil
	}, nil
}
