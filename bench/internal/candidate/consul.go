package candidate

import (
	"context"

	"github.com/hashicorp/consul/api"
)

// newConsulLock elects with the lock of Consul's own client. Its documentation says of Lock:
// "Returns a channel that is closed if our lock is lost", and asks to call Unlock then. All
// options but the session's time have their defaults: no retries of the monitor, and 15 s of
// lock-delay.
func newConsulLock(_ context.Context, s Settings) (elector, error) {
	client, err := api.NewClient(&api.Config{Address: s.Addresses[0]})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (term, error) {
		lock, err := client.LockOpts(&api.LockOptions{Key: s.Election, Value: []byte(s.ID), SessionTTL: s.Session.String()})
		if err != nil {
			return term{}, err
		}
		lost, err := lock.Lock(ctx.Done())
		if err != nil {
			return term{}, err
		}
		// A lock that has been lost cannot be unlocked; the call ends its renewal.
		return term{leads: func() bool { return open(lost) }, release: func() { _ = lock.Unlock() }}, nil
	}, nil
}
