package etcd

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"

	"github.com/succession-dev/succession/internal/addresses"
)

// Connections are those of a client that the backend has made. The client sends each request to the next of all servers, but of the
// servers at one name, or behind one address, it knows only the one that it is connected to. If that has lost the others it answers on, or
// if it stands still and its kernel takes what is sent, the client would keep it. A nil *connections, for a client of the caller's, does
// nothing.
type connections struct {
	dialer   *addresses.Dialer
	patience time.Duration // for how long servers may be silent; they may not say for longer than maxReconnect that they cannot serve

	mu   sync.Mutex
	all  map[string][]net.Conn // by server, as the client knows it; some may be closed
	sick time.Time             // since when servers cannot serve; zero if they can
}

func newConnections(patience time.Duration) *connections {
	return &connections{dialer: newDialer(), patience: patience, all: make(map[string][]net.Conn)}
}

// newDialer makes what connects a client to servers; a test replaces it.
var newDialer = addresses.New

func (c *connections) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, "tcp", strings.Replace(addr, "%25", "%", 1))
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all[addr] = append(slices.DeleteFunc(c.all[addr], isClosed), conn)
	}
	return conn, err
}

func isClosed(conn net.Conn) bool {
	raw, err := conn.(syscall.Conn).SyscallConn()
	return err != nil || raw.Control(func(uintptr) {}) != nil
}

// answered notes how a heartbeat has ended that began then, or the opening of a session. If servers have said for a while that they cannot
// serve, it closes all connections. A server that is merely slow says nothing, and there are others. But if the client has one connection,
// and its name has other addresses, silence counts, too. That includes silence to the proof of a heartbeat: a server whose disk stands still
// passes heartbeats on to etcd's leader, and cannot do more. Silence has to last for longer, because it may be the quorum that is slow. Then the
// next attempt, which waits for longer, is to get its answer on the same connection.
func (c *connections) answered(begun time.Time, err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.sick = time.Time{}
		return
	}
	var said rpctypes.EtcdError
	patience := c.patience
	switch {
	case errors.As(err, &said):
		if said.Code() != codes.Unavailable {
			return
		}
		patience = min(patience, maxReconnect)
	case !isLost(err) || !c.alone():
		return
	}
	if c.sick.IsZero() {
		c.sick = begun
	}
	if time.Since(c.sick) > patience {
		c.sick = time.Time{}
		for _, conns := range c.all {
			for _, conn := range conns {
				conn.Close()
			}
		}
	}
}

// alone reports whether the client knows one server, by a name that has several addresses. The caller holds the lock.
func (c *connections) alone() bool {
	several := false
	for addr := range c.all {
		several = c.dialer.Several(addr)
	}
	return several && len(c.all) == 1
}
