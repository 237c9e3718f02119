package etcd

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/internal/addresses"
	"github.com/succession-dev/succession/internal/security"
)

// MaxTurns is how many requests about keys a backend has on their way.
const MaxTurns = maxTurns

// Sweep is how long after a watch has ended etcd is told.
const Sweep = sweep

// MaxAnswer is the longest answer that is read.
const MaxAnswer = maxAnswer

// Names are names for tests, with the addresses that each has, or with what returns them.
var Names sync.Map // string to []string or func() []string

func init() {
	newDialer = func() *addresses.Dialer {
		d := addresses.New()
		system := d.Lookup
		d.Lookup = func(ctx context.Context, host string) ([]string, error) {
			switch addrs, _ := Names.Load(host); addrs := addrs.(type) {
			case []string:
				return slices.Clone(addrs), nil
			case func() []string:
				return addrs(), nil
			}
			return system(ctx, host)
		}
		return d
	}
}

// Lease returns the ID of the lease that the session's members are attached to.
func Lease(s backend.Session) int64 { return s.(*kit.Adapter).Session.(*session).present().lease }

// Reserved returns how many names of members are taken in the session, by joins that are under way too.
func Reserved(s backend.Session) int {
	in := s.(*kit.Adapter).Session.(*session)
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.taken)
}

// Leads reports whether the session's heartbeats need a proof, or its deadline is that of the newest one.
func Leads(s backend.Session) bool {
	p := &s.(*kit.Adapter).Session.(*session).proof
	held, _ := p.lease.Held()
	return held || p.wanted()
}

// Unprove makes what is proven of the session's lease lie in the past.
func Unprove(s backend.Session) {
	p := &s.(*kit.Adapter).Session.(*session).proof
	p.lease.Cap(clock.Now(), 0)
	p.acknowledged(ack{})
}

// NewAuthenticator returns what asks auth for tokens with the password, as the client of a URL does.
func NewAuthenticator(client context.Context, auth clientv3.Auth, password *security.Secret) clientv3.Auth {
	return newAuthenticator(client, auth, password)
}

// EndAuthenticator does what Close does once the client has ended.
func EndAuthenticator(a clientv3.Auth) { a.(*authenticator).end() }

// Hurry makes b, which has no session yet, believe that a server's limit for a request is
// two election timeouts. It returns how long b then waits between the two answers of a
// server.
func Hurry(b *Backend) time.Duration {
	b.queueing = 0
	return b.o.TTL * 4 / 3
}

// TakeForOld has the backend take servers before 3.99.0 for such as do not keep to rights.
func TakeForOld(b *Backend) { b.strict = releases{{99, 0}} }

// NewConnections returns the connections of a client.
func NewConnections(patience time.Duration) *connections { return newConnections(patience) }

// Connect has b, whose client connects by c, tell c of its heartbeats.
func (c *connections) Connect(b *Backend) { b.conns = c }

// Dial connects the client to a server.
func (c *connections) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return c.dial(ctx, addr)
}

// Answered notes how a heartbeat has ended that began then.
func (c *connections) Answered(begun time.Time, err error) { c.answered(begun, err) }
