package etcd

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/logs"
)

const (
	// maxTTL is the longest TTL that is safe on every server. After a change of leader,
	// servers that checkpoint leases (the feature gate LeaseCheckpoint) count a longer
	// one on from what was left of it (etcd, server/lease/lessor.go).
	maxTTL = 5 * time.Minute

	// closeBound is the longest time that Backend.Close waits for etcd.
	closeBound = 2 * time.Second
)

// Options are the settings of a [Backend]. The zero value and nil are the defaults.
type Options struct {
	// TTL is the session time: etcd ends a session that it has not heard from for that
	// long. It is rounded up to whole seconds, and etcd may grant more (at least one and
	// a half times its election timeout, 2 s by default). At most 5 minutes. 0 means 10
	// s.
	TTL time.Duration

	// Prefix begins all keys, such as "app/". It is used as it is. If it is empty, the election
	// "leader" is the one that "etcdctl elect leader" joins.
	Prefix string

	// ConnectTimeout bounds the opening of a session. 0 means 4 s, so that a wrong
	// address is reported within five.
	ConnectTimeout time.Duration

	// Margin is how long before the end of the lease the session's deadline lies. It covers what
	// the client cannot know: how much faster or slower the server's clock runs. At most half of
	// the granted TTL, because heartbeats are a quarter of it apart. 0 means a tenth of the TTL and
	// at least 1 s, but never more than a fifth of it.
	Margin time.Duration

	// Logger gets the log messages. nil passes warnings on to [slog.Default], and discards the rest.
	Logger *slog.Logger
}

// filled checks o and returns a copy with the defaults filled in.
func (o *Options) filled() (Options, error) {
	var f Options
	if o != nil {
		f = *o
	}
	f.TTL = cmp.Or(f.TTL, 10*time.Second)
	f.ConnectTimeout = cmp.Or(f.ConnectTimeout, 4*time.Second)
	f.Logger = logs.Or(f.Logger)
	switch {
	case f.TTL < 0 || f.TTL > maxTTL:
		return f, fmt.Errorf("%w: TTL %v is not between 1 s and %v", backend.ErrInvalid, f.TTL, maxTTL)
	case f.ConnectTimeout < 0:
		return f, fmt.Errorf("%w: connect timeout %v is negative", backend.ErrInvalid, f.ConnectTimeout)
	case f.Margin < 0:
		return f, fmt.Errorf("%w: margin %v is negative", backend.ErrInvalid, f.Margin)
	}
	return f, nil
}

// seconds returns the TTL to ask for, in seconds.
func (o *Options) seconds() int64 { return int64((o.TTL + time.Second - 1) / time.Second) }

// margin returns how long before the end of a lease with the given TTL the deadline lies.
//
// etcd gives a lease a whole TTL when it handles a heartbeat, which is later than it was
// sent. A new leader of etcd gives every lease a TTL and an election timeout from when it
// takes over (server/lease/lessor.go, Promote). Where it counts, a [proof] shows that
// etcd's leader handled the heartbeat, and that no other leader took over before. So the
// margin is for clocks alone. A tenth is far more than the difference between disciplined
// clocks (adjtimex(2) slews by 0.05 % at most); a second is what the clock of a virtual
// machine may jump by. A short TTL has no room for a second. A fifth also covers the tick
// by which a new leader may be early for a session that only waits.
func (o *Options) margin(ttl time.Duration) time.Duration {
	if o.Margin > 0 {
		return o.Margin
	}
	return min(max(ttl/10, time.Second), ttl/5)
}
