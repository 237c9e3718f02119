package candidate

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// concurrencyElection elects with etcd's own recipe.
func concurrencyElection(_ context.Context, s Settings) (func(string) Elector, error) {
	return concurrencySessions(s, func(session *concurrency.Session, name string) (win, resign func(context.Context) error) {
		e := concurrency.NewElection(session, name)
		return func(ctx context.Context) error { return e.Campaign(ctx, s.ID) }, e.Resign
	})
}

// concurrencyMutex holds etcd's own lock.
func concurrencyMutex(_ context.Context, s Settings) (func(string) Elector, error) {
	return concurrencySessions(s, func(session *concurrency.Session, name string) (win, resign func(context.Context) error) {
		m := concurrency.NewMutex(session, name)
		return m.Lock, m.Unlock
	})
}

// concurrencySessions gives each candidate a session, which it keeps from term to term. The
// documentation says of Session.Done: "a channel that closes when the lease is orphaned, expires,
// or is otherwise no longer being refreshed".
func concurrencySessions(
	s Settings, stand func(session *concurrency.Session, name string) (win, resign func(context.Context) error),
) (func(string) Elector, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: s.Addresses, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return func(election string) Elector {
		var session *concurrency.Session
		return func(ctx context.Context) (Term, error) {
			if session == nil {
				var err error
				if session, err = concurrency.NewSession(client, concurrency.WithTTL(int(s.Session/time.Second))); err != nil {
					return Term{}, err
				}
			}
			// Close revokes the lease. Where it cannot, the lease ends by itself.
			end := func() error {
				defer func() { session = nil }()
				return session.Close()
			}
			win, resign := stand(session, election)
			if err := win(ctx); err != nil {
				_ = end()
				return Term{}, err
			}
			done := session.Done()
			return Term{Leads: func() bool { return open(done) }, Release: func(lost bool) error {
				if lost {
					return end()
				}
				return resign(ctx)
			}}, nil
		}
	}, nil
}
