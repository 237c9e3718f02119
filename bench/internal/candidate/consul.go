package candidate

import (
	"context"
	"time"

	"github.com/hashicorp/consul/api"
)

// consulLock elects with the lock of Consul's own client. Its documentation says of Lock:
// "Returns a channel that is closed if our lock is lost", and asks to call Unlock then. All
// options but the session's time and name have their defaults: no retries of the monitor, and
// 15 s of lock-delay. Consul's own command asks three times, a second apart, before it believes that the lock is lost, where a server
// answers that it cannot tell (command/lock/lock.go).
func consulLock(_ context.Context, s Settings) (func(string) Elector, error) {
	client, err := api.NewClient(&api.Config{Address: s.Addresses[0]})
	if err != nil {
		return nil, err
	}
	return func(election string) Elector {
		return func(ctx context.Context) (Term, error) {
			o := &api.LockOptions{Key: election, Value: []byte(s.ID), SessionName: election, SessionTTL: s.Session.String()}
			if s.Library.Name == AsCommand {
				o.MonitorRetries, o.MonitorRetryTime = 3, time.Second
			}
			lock, err := client.LockOpts(o)
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
