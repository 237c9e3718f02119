package consul

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/logs"
)

// Options are the settings of a [Backend]. The zero value and nil are the defaults.
type Options struct {
	// TTL is the session time: a session ends by itself if Consul has not confirmed it
	// for this long. 0 means 15 s.
	//
	// Two facts about Consul matter here. A server refuses less than its session_ttl_min, 10 s
	// unless configured otherwise, and more than 24 h. And Consul ends a session that it does not
	// hear from only after twice the TTL, so the successor of a leader that crashed begins up to
	// 2*TTL later: 30 s by default.
	TTL time.Duration

	// Node is the name of the catalog node that sessions are bound to. It stands for no machine and
	// no agent runs it, so Consul never finds that it has failed. It is registered if it does not
	// exist. For that the token needs node:write once; or an operator registers the node
	// beforehand. To deregister it ends all sessions bound to it. Empty means "succession".
	Node string

	// AgentNode binds sessions to the node of the agent, and not to Node.
	//
	// Do not use it with an agent that is a server, nor if agents leave the cluster when
	// they stop. Consul ends all sessions of a node together with the node, whatever
	// their TTL, and removes the node of a failed server within seconds (autopilot's
	// cleanup_dead_servers). A leader that is cut off believes in its session for up to a TTL, and
	// meanwhile another one leads. AgentNode is for clusters that allow no other node, and whose
	// agents are never removed.
	AgentNode bool

	// Prefix is the folder in the key-value store that holds all elections and records,
	// such as "app". Empty means the root.
	Prefix string

	// ConnectTimeout bounds the opening of a session. 0 means 4 s, so that a wrong
	// address is reported within 5 s.
	ConnectTimeout time.Duration

	// Logger gets the log messages. nil passes warnings on to [slog.Default], and discards the rest.
	Logger *slog.Logger
}

const (
	defaultTTL     = 15 * time.Second
	maxTTL         = 24 * time.Hour // structs.SessionTTLMax of Consul
	defaultNode    = "succession"
	defaultConnect = 4 * time.Second

	// maxWait bounds a blocking query. So it bounds for how long a query that has died
	// unseen goes unnoticed, and for how long a cancelled one occupies a server.
	maxWait = time.Minute

	// minPause is the first pause before something is tried again.
	minPause = 20 * time.Millisecond
)

// filled checks o and returns a copy with the defaults filled in.
func (o *Options) filled() (*Options, error) {
	var f Options
	if o != nil {
		f = *o
	}
	f.TTL = cmp.Or(f.TTL, defaultTTL)
	f.Node = cmp.Or(f.Node, defaultNode)
	f.ConnectTimeout = cmp.Or(f.ConnectTimeout, defaultConnect)
	f.Logger = logs.Or(f.Logger)
	f.Prefix = strings.TrimSuffix(strings.TrimPrefix(f.Prefix, "/"), "/")
	switch {
	case f.TTL < 100*time.Millisecond || f.TTL > maxTTL:
		return nil, fmt.Errorf("%w: TTL %v is not between 100 ms and %v", backend.ErrInvalid, f.TTL, maxTTL)
	case f.ConnectTimeout < 0:
		return nil, fmt.Errorf("%w: ConnectTimeout %v is negative", backend.ErrInvalid, f.ConnectTimeout)
	}
	if f.Prefix != "" {
		if err := backend.CheckName(f.Prefix); err != nil {
			return nil, fmt.Errorf("prefix: %w", err)
		}
	}
	return &f, nil
}

// wait returns how long a blocking query blocks at most; Consul adds up to a sixteenth.
// When it is over, three requests follow. They are few beside those of the session in
// that time.
func (o *Options) wait() time.Duration { return min(maxWait, 4*o.TTL) }

// longest returns when the agent is done with a blocking query, whatever has become of it.
func (o *Options) longest() time.Duration { return o.wait() + o.wait()/16 }

// attempt returns how long one request may take. Several must fit into a TTL, so that a
// server that does not answer does not cost the session.
func (o *Options) attempt() time.Duration { return o.TTL / 3 }

// backoff returns the pauses between attempts. They are short beside a TTL.
func (o *Options) backoff() backoff.Backoff {
	return backoff.Backoff{Min: minPause, Max: max(minPause, min(time.Second, o.TTL/15))}
}

// patience returns the pauses between blocking queries that fail. The caller reads in
// between, so the pauses grow only if reads are answered.
func (o *Options) patience() backoff.Backoff {
	return backoff.Backoff{Min: minPause, Max: max(minPause, o.attempt())}
}

// quiet returns the pauses between blocking queries that end although nothing has changed.
func (o *Options) quiet() backoff.Backoff {
	return backoff.Backoff{Min: max(minPause, min(time.Second/2, o.TTL/8)), Max: max(minPause, min(time.Second, o.TTL/2))}
}

// look returns the time between two reads for waiters that have no query of their own.
func (o *Options) look() time.Duration { return max(minPause, min(time.Second, o.TTL/8)) }
