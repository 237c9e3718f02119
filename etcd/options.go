package etcd

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/succession-dev/succession/backend"
)

const (
	// maxTTL is the longest time to live that is safe on every server: those that
	// checkpoint leases (the feature gate LeaseCheckpoint) count a longer one on from
	// what was left of it before a change of leader (etcd, server/lease/lessor.go).
	maxTTL = 5 * time.Minute

	// closeBound is how long Backend.Close waits for etcd at most.
	closeBound = 2 * time.Second
)

// Options are the settings of a [Backend]. The zero value and nil are the
// defaults.
type Options struct {
	// TTL is the time to live of the session's lease: etcd ends a session that it
	// has not heard from for that long. Leases count in whole seconds, so it is
	// rounded up, and etcd may grant more (at least one and a half times its
	// election timeout, 2 s by default). At most 5 minutes. 0 is 10 s.
	TTL time.Duration

	// Prefix is what all keys begin with, such as "app/". It is used as it is. Empty
	// is nothing: the election "leader" is then the one that
	// "etcdctl elect leader" joins.
	Prefix string

	// ConnectTimeout bounds the opening of a session. 0 is 4 s, so that a wrong address
	// is reported within five.
	ConnectTimeout time.Duration

	// Margin is how long before the end of the lease the session's deadline lies.
	// It covers what the client cannot know: how its clock's rate differs from the
	// server's. At most half of the granted TTL, as heartbeats are a quarter of it apart.
	// 0 is a tenth of it and at least 1 s, but never more than a fifth.
	Margin time.Duration

	// Logger gets what is worth telling. nil discards it.
	Logger *slog.Logger
}

// filled returns a copy of o with defaults filled in.
func (o *Options) filled() (Options, error) {
	var f Options
	if o != nil {
		f = *o
	}
	if f.TTL == 0 {
		f.TTL = 10 * time.Second
	}
	if f.ConnectTimeout == 0 {
		f.ConnectTimeout = 4 * time.Second
	}
	if f.Logger == nil {
		f.Logger = slog.New(slog.DiscardHandler)
	}
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

// seconds returns the TTL to ask for.
func (o *Options) seconds() int64 { return int64((o.TTL + time.Second - 1) / time.Second) }

// margin returns how long before the end of a lease with the given TTL the
// deadline lies.
//
// etcd refreshes a lease for a whole TTL when it handles the request, which is later
// than it was sent, and a new leader of etcd grants every lease a TTL and an election
// timeout from when it takes over (server/lease/lessor.go, Promote). That it was the
// leader that handled it, and that no other took over before, is proven where it
// counts; see proof. So the margin is for clocks alone: a tenth is far more than clocks
// differ that are disciplined (adjtimex(2) slews by 0.05 % at most), a second what
// a virtual machine's may jump by. A short TTL has no room for that, and a fifth of it
// also covers the tick by which a new leader may be early for one that only waits.
func (o *Options) margin(ttl time.Duration) time.Duration {
	if o.Margin > 0 {
		return o.Margin
	}
	return min(max(ttl/10, time.Second), ttl/5)
}
