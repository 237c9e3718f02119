package etcd

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/addresses"
	"github.com/succession-dev/succession/internal/kit"
)

// Names are names for tests, with the addresses that each has.
var Names sync.Map // string to []string

func init() {
	newDialer = func() *addresses.Dialer {
		d := addresses.New()
		system := d.Lookup
		d.Lookup = func(ctx context.Context, host string) ([]string, error) {
			if addrs, ok := Names.Load(host); ok {
				return slices.Clone(addrs.([]string)), nil
			}
			return system(ctx, host)
		}
		return d
	}
}

// Lease returns the ID of the lease that the session's members are attached to.
func Lease(s backend.Session) int64 { return s.(*kit.Adapter).Session.(*session).present().lease }

// Hurry makes b, which has no session yet, believe that a server's limit for a request is
// two election timeouts. It returns how long b then waits between the two answers of a
// server.
func Hurry(b *Backend) time.Duration {
	b.queueing = 0
	return b.o.TTL * 4 / 3
}
