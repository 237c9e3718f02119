package etcd_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// TestSilentAddress uses a name with two addresses of which the first accepts connections and
// stays silent. A session is opened at the other one, and a leader whose connection breaks
// connects again before its term would end.
func TestSilentAddress(t *testing.T) {
	t.Parallel()
	front := coordtest.NewProxy(t, sharedEtcd(t).Addrs()[0])
	_, port, err := net.SplitHostPort(front.Addr())
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	etcd.Names.Store("silent-address.test", []string{"127.0.0.2", "127.0.0.1"})
	s := openURL(t, "etcd://silent-address.test:"+port+"?ttl=10s")
	m, watch := lead(t, s, coordtest.Name(t)), calm.Start(t)
	for range 3 {
		front.Reset()
		least := s.TTL()
		answered := make(chan error, 1)
		go func() {
			_, err := s.Get(t.Context(), "record")
			answered <- err
		}()
		for waiting := true; waiting; {
			select {
			case err := <-answered:
				if err != nil {
					if !watch.NotJudged(s.TTL()/4, "a read: %v", err) {
						t.Fatal(err)
					}
					return
				}
				waiting = false
			case <-time.After(5 * time.Millisecond):
			}
			least = min(least, time.Until(s.Deadline()))
		}
		t.Logf("at least %v were left", least)
		standsFirst(t, s, m)
	}
}

// TestIsolatedServer uses a name with two addresses. The server at the first is cut off from the others, and answers its clients on. A
// leader finds the server at the other address in time, and so does a process that starts.
func TestIsolatedServer(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3, Links: true})
	leads := leader(t, cluster)
	first, second := cluster.Servers()[(leads+1)%3], cluster.Servers()[leads]
	at := "etcd://" + nameOf(t, "isolated-server.test", first.Addr(), second.Addr()) + "?ttl=10s"
	s := openURL(t, at)
	m := lead(t, s, coordtest.Name(t))
	if err := cluster.Isolate(first); err != nil {
		t.Fatal(err)
	}
	renewed := renews(t, s)
	lead(t, openURL(t, at), coordtest.Name(t))
	if renewed() {
		standsFirst(t, s, m)
	}
}

// TestPausedServer is TestIsolatedServer for a server that stands still, while its kernel takes what is sent.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	leads := leader(t, cluster)
	first, second := cluster.Servers()[(leads+1)%3], cluster.Servers()[leads]
	s := openURL(t, "etcd://"+nameOf(t, "paused-server.test", first.Addr(), second.Addr())+"?ttl=10s")
	m := lead(t, s, coordtest.Name(t))
	if err := first.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { first.Resume() })
	if renews(t, s)() {
		standsFirst(t, s, m)
	}
}

// TestSlowQuorum uses a name with two addresses while the quorum takes longer to answer than a heartbeat and its proof wait at first. The client
// keeps its connection, and what it has sent on it.
func TestSlowQuorum(t *testing.T) {
	t.Parallel()
	const ttl = 20 * time.Second
	addr := sharedEtcd(t).Addrs()[0]
	conns := etcd.NewConnections(ttl / 4)
	var dials atomic.Int32
	var slow atomic.Bool
	c, err := etcdrig.Dial([]string{nameOf(t, "slow-quorum.test", addr, addr)},
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			dials.Add(1)
			return conns.Dial(ctx, addr)
		}),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if slow.Load() && path.Base(method) == "MemberList" {
				select {
				case <-time.After(2500 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b, err := etcd.New(c, &etcd.Options{TTL: ttl, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	conns.Connect(b)
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lead(t, s, coordtest.Name(t))
	slow.Store(true)
	watch, before := calm.Start(t), dials.Load()
	if !renews(t, s)() {
		return
	}
	if n := dials.Load() - before; n > 0 && !watch.NotJudged(ttl/4, "%d connections", n) {
		t.Errorf("the client has connected %d times", n)
	}
}

// nameOf gives the name two addresses, by which one connects to the two servers, and returns it with the port.
func nameOf(t *testing.T, name, first, second string) string {
	t.Helper()
	front := coordtest.NewProxy(t, first)
	_, port, err := net.SplitHostPort(front.Addr())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	forward(l, second)
	etcd.Names.Store(name, []string{"127.0.0.1", "127.0.0.2"})
	return net.JoinHostPort(name, port)
}

// renews returns a func that waits until a heartbeat was confirmed that was sent after the call of renews. It fails the test if the
// session ends before, and returns false if the machine was too busy.
func renews(t *testing.T, s backend.Session) func() bool {
	t.Helper()
	watch, since := calm.Start(t), time.Now()
	return func() bool {
		t.Helper()
		for !s.Deadline().After(since.Add(s.TTL())) {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-s.Done():
				if !watch.NotJudged(s.TTL()/4, "%v", s.Err()) {
					t.Fatal(s.Err())
				}
				return false
			}
		}
		return true
	}
}

// TestServersReplaced gives a name another address, and lets the one that it had vanish, as when
// members of etcd are replaced one by one. A leader goes on at the new one.
func TestServersReplaced(t *testing.T) {
	t.Parallel()
	const name = "replaced.test"
	first := coordtest.NewProxy(t, sharedEtcd(t).Addrs()[0])
	_, port, err := net.SplitHostPort(first.Addr())
	if err != nil {
		t.Fatal(err)
	}
	etcd.Names.Store(name, []string{"127.0.0.1"})
	s := openURL(t, "etcd://"+name+":"+port+"?ttl=20s")
	m := lead(t, s, coordtest.Name(t))
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	forward(l, sharedEtcd(t).Addrs()[0])
	etcd.Names.Store(name, []string{"127.0.0.2"})
	first.Kill()
	standsFirst(t, s, m)
}

// TestZone uses an IPv6 address with a zone.
func TestZone(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	forward(l, sharedEtcd(t).Addrs()[0])
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, zone := range []string{"%25lo", "%lo"} {
		lead(t, openURL(t, "etcd://[::1"+zone+"]:"+port), coordtest.Name(t))
	}
}

// forward passes on what comes from the connections of l to the server, and back, until l is
// closed.
func forward(l net.Listener, server string) {
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				in.Close()
				return
			}
			go func() { defer out.Close(); _, _ = io.Copy(out, in) }()
			go func() { defer in.Close(); _, _ = io.Copy(in, out) }()
		}
	}()
}

// TestSickAfterStatus has a client ask its server for its status, which takes a connection of its own, and is then told that the server
// cannot serve. The connection that is left is closed.
func TestSickAfterStatus(t *testing.T) {
	t.Parallel()
	const patience = time.Second
	c, addr := etcd.NewConnections(patience), sharedEtcd(t).Addrs()[0]
	lasting, err := c.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	defer lasting.Close()
	short, err := c.Dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	short.Close()
	c.Answered(time.Now().Add(-2*patience), rpctypes.ErrNoLeader)
	c.Answered(time.Now(), rpctypes.ErrNoLeader)
	if err := lasting.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection: %v; want one that is closed", err)
	}
}
