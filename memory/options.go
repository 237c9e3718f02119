package memory

import "time"

// DefaultTTL is the session time where Options say nothing.
const DefaultTTL = 10 * time.Second

// Options are the settings of a [Coordinator]. The zero value and nil are the
// defaults.
type Options struct {
	// TTL is the time after which the coordinator ends a session that it has not
	// heard from. 0 is [DefaultTTL].
	TTL time.Duration
	// Slack is how much later than TTL the coordinator gets round to it, as real
	// ones do: a ZooKeeper rounds up to a tick, a Consul may take twice the TTL.
	// 0 is none.
	Slack time.Duration
	// Index is where the log begins, and where it begins again after
	// [Coordinator.Reset]: the first position is one more.
	Index uint64
}
