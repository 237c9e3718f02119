package target

import (
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/operator"
)

// kinds are the kinds of coordinators, by their scheme.
var kinds = map[string]struct {
	// slack is how much later than its time, ttl, the coordinator may end a session.
	slack func(ttl time.Duration) time.Duration
	// unfit is that of the harness.
	unfit map[string]string
}{
	// A server ends sessions at whole ticks, and reports to its leader at half ones; a
	// session is two ticks at the least.
	"zookeeper": {slack: func(ttl time.Duration) time.Duration { return ttl + ttl/4 }},
	// It looks for leases that are over twice a second (etcd, server/lease/lessor.go).
	"etcd": {slack: func(time.Duration) time.Duration { return time.Second }},
	// It ends a session after twice its time.
	"consul": {slack: func(ttl time.Duration) time.Duration { return ttl + ttl/4 }, unfit: map[string]string{
		"G9.campaigns": "it would take a connection that is kept for the next request for a goroutine that was left",
	}},
	"local": {slack: func(time.Duration) time.Duration { return 0 }},
}

// newOperator returns an operator of the coordinator that u names.
func newOperator(u *backend.URL) (operator.Operator, error) {
	if u.Scheme == "local" {
		return newLocal(u)
	}
	return operator.New(u)
}
