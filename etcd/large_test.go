package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// A line may be larger than 4 MiB, which is what gRPC takes by default.
func TestLargeLine(t *testing.T) {
	t.Parallel()
	b, err := succession.Connect(t.Context(), "etcd://"+sharedEtcd(t).Addrs()[0]+"?ttl=1m&connect="+opening.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const items = 5 << 20 / backend.MaxValue
	name, value := coordtest.Name(t), strings.Repeat("x", backend.MaxValue)
	for range items {
		if _, err := s.Append(t.Context(), name, value); err != nil {
			t.Fatal(err)
		}
	}
	ctx := within(t, time.Minute)
	if l, err := s.Line(ctx, name); err != nil || len(l.Members) != items {
		t.Errorf("Line returned %d members, %v; want %d", len(l.Members), err, items)
	}
	if l, err := s.WatchLine(ctx, name, backend.Line{}); err != nil || len(l.Members) != items {
		t.Errorf("WatchLine returned %d members, %v; want %d", len(l.Members), err, items)
	}
}

// No answer to what a session asks of keys is read beyond its longest length.
func TestLongestAnswer(t *testing.T) {
	t.Parallel()
	asked, bounded := 0, 0
	c, err := etcdrig.Dial(sharedEtcd(t).Addrs(), grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if strings.HasSuffix(method, "/Txn") {
				asked++
				for _, o := range opts {
					if most, ok := o.(grpc.MaxRecvMsgSizeCallOption); ok && most.MaxRecvMsgSize == etcd.MaxAnswer {
						bounded++
					}
				}
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b, err := etcd.New(c, &etcd.Options{ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Line(t.Context(), coordtest.Name(t)); err != nil {
		t.Error(err)
	}
	if err := errors.Join(s.Close(t.Context()), b.Close()); err != nil {
		t.Error(err)
	}
	if asked == 0 || bounded != asked {
		t.Errorf("of %d transactions %d have the bound", asked, bounded)
	}
}
