package etcd_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// TestCloseSilentServer closes backends while one of the servers stands still. That costs none of them its bound.
func TestCloseSilentServer(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	leads, name := leader(t, cluster), coordtest.Name(t)
	backends := make([]*etcd.Backend, 12) // their clients take the servers in turn
	for i := range backends {
		backends[i] = newCluster(t, cluster, 10*time.Second)
		s, err := backends[i].Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		join(t, s, name, "x")
	}
	silent := cluster.Servers()[(leads+1)%3]
	if err := silent.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Resume() })
	watch := calm.Start(t)
	for _, b := range backends {
		if err := b.Close(); err != nil {
			if !watch.NotJudged(time.Second, "Close: %v", err) {
				t.Error(err)
			}
			return
		}
	}
	if got := keys(t, admin(t, cluster.Addrs()[leads]), name+"/"); len(got) > 0 {
		t.Errorf("%q stands after Close", got)
	}
}

// TestCloseSlowServer closes a backend whose server is slow to say that it has revoked the lease. Close waits for that.
func TestCloseSlowServer(t *testing.T) {
	t.Parallel()
	var revokes atomic.Int32
	slow := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if _, ok := req.(*pb.LeaseRevokeRequest); ok {
			revokes.Add(1)
			select {
			case <-time.After(1500 * time.Millisecond):
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			}
		}
		return err
	}
	c, err := etcdrig.Dial(sharedEtcd(t).Addrs(), grpc.WithChainUnaryInterceptor(slow))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b, err := etcd.New(c, &etcd.Options{TTL: 10 * time.Second, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	join(t, s, coordtest.Name(t), "x")
	watch := calm.Start(t)
	if err := b.Close(); err != nil && !watch.NotJudged(time.Second, "Close: %v", err) {
		t.Error(err)
	}
	if n := revokes.Load(); n > 2 {
		t.Errorf("the server was told %d times", n)
	}
}

// TestCloseWhileConnecting closes a backend that asks for its first token, which nobody answers.
func TestCloseWhileConnecting(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // which answers nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	asked := make(chan net.Conn, 1)
	go func() {
		conn, _ := l.Accept()
		asked <- conn
	}()
	u, err := coordinator.ParseURL("etcd://" + l.Addr().String() + "?connect=1m&user=app&password-env=" + env(t, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := etcd.Open(u)
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := b.Session(t.Context())
		opened <- err
	}()
	if conn := <-asked; conn != nil {
		defer conn.Close()
	}
	watch := calm.Start(t)
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	watch.Within(3*time.Second, "Close")
	if err := <-opened; !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Session: %v; want ErrClosed", err)
	}
}

// TestCloseAwaitsAll closes a backend while etcd still ends an earlier session, and ends
// the present one sooner. Nothing stands afterwards.
func TestCloseAwaitsAll(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator := admin(t, addr)
	var first int64
	second := make(chan struct{}) // is closed when the second lease has been revoked
	slow := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		r, revokes := req.(*pb.LeaseRevokeRequest)
		if revokes && r.ID == first {
			<-second
			select {
			case <-time.After(300 * time.Millisecond): // etcd takes its time
			case <-ctx.Done():
			}
		}
		err := invoke(ctx, method, req, reply, cc, opts...)
		if revokes && r.ID != first {
			close(second)
		}
		return err
	}
	c, err := etcdrig.Dial([]string{addr}, grpc.WithChainUnaryInterceptor(slow))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b, err := etcd.New(c, &etcd.Options{TTL: patient, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })

	name := coordtest.Name(t)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first = etcd.Lease(s)
	join(t, s, name, "first")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Close(ended); err == nil {
		t.Error("Close of a session did not say that its lease still stands")
	}
	if s, err = b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	join(t, s, name, "second")
	watch := calm.Start(t)
	if err := b.Close(); err != nil {
		if !watch.NotJudged(2*time.Second, "Close: %v", err) {
			t.Error(err)
		}
		return
	}
	if got := keys(t, operator, name+"/"); len(got) > 0 {
		t.Errorf("%q stands after Close", got)
	}
}
