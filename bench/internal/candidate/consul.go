package candidate

import (
	"context"

	"github.com/hashicorp/consul/api"
)

// consulLock elects with the lock of Consul's own client. Its documentation says of Lock:
// "Returns a channel that is closed if our lock is lost", and asks to call Unlock then. All
// options but the session's time and name have their defaults: no retries of the monitor, and
// 15 s of lock-delay.
func consulLock(_ context.Context, s Settings) (func(string) Elector, error) {
	client, err := api.NewClient(&api.Config{Address: s.Addresses[0]})
	if err != nil {
		return nil, err
	}
	return func(election string) Elector {
		return func(ctx context.Context) (Term, error) {
			lock, err := client.LockOpts(&api.LockOptions{
				Key: election, Value: []byte(s.ID), SessionName: election, SessionTTL: s.Session.String(),
			})
			if err != nil {
				return Term{}, err
			}
			lost, err := lock.Lock(ctx.Done())
			if err != nil {
				return Term{}, err
			}
			// A lock that has been lost cannot be unlocked; the call ends its renewal.
			return Term{Leads: func() bool { return open(lost) }, Release: func(bool) error { return lock.Unlock() }}, nil
		}
	}, nil
}
