package candidate

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncMutex elects with the mutex of redsync, on one Redis. Its documentation has Extend for who needs the lock for longer than its expiry,
// and Until for how long it is valid; the leader extends it every third of the session's time, which is the expiry, and acts no more if it
// is told that the lock is not its own any longer. All other settings have their defaults. Lock gives up after 32 tries, and is called again.
func redsyncMutex(_ context.Context, s Settings) (func(string) Elector, error) {
	client := redis.NewClient(&redis.Options{Addr: s.Addresses[0]})
	sync := redsync.New(goredis.NewPool(client))
	return func(election string) Elector {
		return func(ctx context.Context) (Term, error) {
			mutex := sync.NewMutex(election, redsync.WithExpiry(s.Session))
			if err := mutex.LockContext(ctx); err != nil {
				return Term{}, err
			}
			var until atomic.Int64 // by the monotonic clock, as Until returns it
			base := time.Now()
			note := func() { until.Store(int64(mutex.Until().Sub(base))) }
			note()
			extending, cancel := context.WithCancel(ctx)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					select {
					case <-time.After(s.Session/3 + rand.N(time.Millisecond)):
					case <-extending.Done():
						return
					}
					still, err := mutex.ExtendContext(extending)
					if _, taken := errors.AsType[*redsync.ErrTaken](err); taken {
						until.Store(0)
						return
					}
					if err == nil && still {
						note()
					}
				}
			}()
			return Term{Leads: func() bool { return time.Since(base) < time.Duration(until.Load()) }, Release: func(lost bool) error {
				cancel()
				<-ended
				_, err := mutex.UnlockContext(ctx)
				if lost {
					return nil
				}
				return err
			}}, nil
		}
	}, nil
}
