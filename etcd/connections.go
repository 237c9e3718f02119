package etcd

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"github.com/succession-dev/succession/internal/addresses"
)

// Connections are those of a client that the backend has made. The client sends each request to the next of all servers, but of the
// servers at one name, or behind one address, it knows only the one that it is connected to. If that has lost the others it answers on,
// and the client would keep it. A nil *connections, for a client of the caller's, does nothing.
type connections struct {
	dialer   *addresses.Dialer
	patience time.Duration // for how long servers may say that they are sick

	mu     sync.Mutex
	newest map[string]net.Conn // by server, as the client knows it; it has no other to that
	sick   time.Time           // since when servers say so; zero if they do not
}

func newConnections(patience time.Duration) *connections {
	return &connections{dialer: newDialer(), patience: patience, newest: make(map[string]net.Conn)}
}

// newDialer makes what connects a client to servers; a test replaces it.
var newDialer = addresses.New

func (c *connections) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, "tcp", strings.Replace(addr, "%25", "%", 1))
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.newest[addr] = conn
	}
	return conn, err
}

// answered notes how a heartbeat has ended, or the opening of a session. If servers have said for a while that they cannot serve, it
// closes all connections. A server that is merely slow says nothing.
func (c *connections) answered(err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var said rpctypes.EtcdError
	switch {
	case err == nil:
		c.sick = time.Time{}
	case !errors.As(err, &said) || said.Code() != codes.Unavailable:
	case c.sick.IsZero():
		c.sick = time.Now()
	case time.Since(c.sick) > c.patience:
		c.sick = time.Time{}
		for _, conn := range c.newest {
			conn.Close()
		}
	}
}
