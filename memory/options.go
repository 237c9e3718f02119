package memory

import "time"

// DefaultTTL is the session time if Options have none.
const DefaultTTL = 10 * time.Second

// Options are the settings of a [Coordinator]. nil and the zero value are the defaults.
type Options struct {
	// TTL is the time after which the coordinator ends a session that it has not
	// heard from. 0 is [DefaultTTL].
	TTL time.Duration
	// Slack is how much later than TTL the coordinator ends a session. Real coordinators
	// are late, too: ZooKeeper rounds up to a tick, Consul may take twice the TTL. 0 is
	// none.
	Slack time.Duration
	// Index is where the log begins, and where it begins again after
	// [Coordinator.Reset]. The first position is one more.
	Index uint64
}
