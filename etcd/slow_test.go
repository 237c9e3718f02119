package etcd_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// A server that is slow has no more work because it is slow. What reads a whole line or folder is sent once, however
// long it takes, and a short request three times at most.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	var mu sync.Mutex
	var slow chan struct{} // answers come when it is closed
	var sent atomic.Int64
	r, err := etcdrig.Start(addr, grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			mu.Lock()
			until := slow
			mu.Unlock()
			if _, ok := req.(*pb.TxnRequest); ok && until != nil {
				sent.Add(1)
				select {
				case <-until:
				case <-ctx.Done():
				}
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	b, err := etcd.New(r.Client, &etcd.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := coordtest.Name(t)
	for _, tt := range []struct {
		what string
		most int64
		f    func() error
	}{
		{"Line", 1, func() error { _, err := s.Line(t.Context(), name); return err }},
		{"Lines", 1, func() error { _, err := s.Lines(t.Context()); return err }},
		{"List", 1, func() error { _, err := s.List(t.Context(), name); return err }},
		{"ReadAll", 1, func() error { _, err := s.ReadAll(t.Context(), name); return err }},
		{"Head", 3, func() error { _, err := s.Head(t.Context(), name); return err }},
		{"Get", 3, func() error { _, err := s.Get(t.Context(), name); return err }},
		{"Join", 3, func() error { _, err := s.Join(t.Context(), name, "", ""); return err }},
		{"Put", 1, func() error { _, err := s.Put(t.Context(), name+"-r", nil, &backend.If{Version: backend.Absent}); return err }},
	} {
		until := make(chan struct{})
		sent.Store(0)
		mu.Lock()
		slow = until
		mu.Unlock()
		ended := make(chan error, 1)
		go func() { ended <- tt.f() }()
		// Less than a session time, after which an answer counts as lost.
		time.Sleep(ttl * 3 / 4)
		n := sent.Load()
		mu.Lock()
		slow = nil
		mu.Unlock()
		close(until)
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", tt.what, err)
		}
		if n < 1 || n > tt.most {
			t.Errorf("%s was sent %d times to a server that took %v to answer, want at most %d", tt.what, n, ttl*3/4, tt.most)
		}
	}
}
