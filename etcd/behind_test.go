package etcd_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// A laggard seems to be a server of its own: the first stream of heartbeats and the first of watches lead to it, and the others to another
// server. When it lags behind, its answers tell the revision that it has come to, and of no event after that. It renews leases as before.
type laggard struct {
	beats, watches atomic.Int64 // streams
	sent           atomic.Int64 // heartbeats
	revision       atomic.Int64 // that it has told
	behind         atomic.Bool
}

func (l *laggard) intercept(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := stream(ctx, desc, cc, method, opts...)
	if err != nil {
		return s, err
	}
	nth := &l.watches
	if strings.HasSuffix(method, "/LeaseKeepAlive") {
		nth = &l.beats
		s = &counted{s, &l.sent}
	}
	return &ofLaggard{s, l, nth.Add(1) == 1}, nil
}

// ofLaggard is a stream to the laggard, or to another server.
type ofLaggard struct {
	grpc.ClientStream
	l   *laggard
	its bool
}

func (s *ofLaggard) RecvMsg(m any) error {
	for {
		if err := s.ClientStream.RecvMsg(m); err != nil {
			return err
		}
		header := m.(interface{ GetHeader() *pb.ResponseHeader }).GetHeader()
		if !s.its {
			header.MemberId = 2
			return nil
		}
		header.MemberId = 1
		if !s.l.behind.Load() {
			s.l.revision.Store(max(s.l.revision.Load(), header.Revision))
			return nil
		}
		header.Revision = s.l.revision.Load()
		if r, ok := m.(*pb.WatchResponse); !ok || len(r.Events) == 0 {
			return nil
		}
	}
}

// TestLaggingServer has the server with a waiter's watch fall behind. At first that server gets the heartbeats of the session, too, which
// would tell nothing of what the others know. The waiter leads when the leader has gone.
func TestLaggingServer(t *testing.T) {
	t.Parallel()
	const ttl = 8 * time.Second
	name := coordtest.Name(t)
	term := campaign(t, newClient(t, sharedEtcd(t).Addrs()[0]), name)
	l, s, won := beforeLaggard(t, name, ttl)
	for ctx, before := within(t, time.Minute), s.Deadline().Add(ttl/2); s.Deadline().Before(before); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("no heartbeats are answered: %v", s.Err())
		}
	}
	l.behind.Store(true)
	watch := calm.Start(t)
	resign(t, term)
	resign(t, takesOver(t, won, watch, ttl+ttl/4))
}

// beforeLaggard returns a session with a waiter, whose servers are the laggard and another one.
func beforeLaggard(t *testing.T, name string, ttl time.Duration) (*laggard, backend.Session, <-chan *elect.Term) {
	t.Helper()
	addr, l := sharedEtcd(t).Addrs()[0], new(laggard)
	c, err := etcdrig.Dial([]string{addr, coordtest.NewProxy(t, addr).Addr()}, grpc.WithChainStreamInterceptor(l.intercept))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b, err := etcd.New(c, &etcd.Options{TTL: ttl, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	won := behind(t, b, name)
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l, s, won
}

// TestWarmHeirOnNewStream has a handover come soon after the heir's heartbeats have gone over to another server, when its grant proves
// too little. As in [TestWarmHeir], the heir sends no heartbeat on its way to leadership.
func TestWarmHeirOnNewStream(t *testing.T) {
	t.Parallel()
	const ttl = 12 * time.Second
	name := coordtest.Name(t)
	term := campaign(t, newClient(t, sharedEtcd(t).Addrs()[0]), name)
	l, s, won := beforeLaggard(t, name, ttl)
	opened := s.Deadline().Add(-ttl)
	for ctx := within(t, time.Minute); s.Deadline().Before(opened.Add(ttl + ttl*3/8)); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("no second heartbeat is answered: %v", s.Err())
		}
	}
	watch := calm.Start(t)
	time.Sleep(time.Until(s.Deadline().Add(-ttl * 7 / 10))) // by then the grant proves less than a quarter of the TTL
	before := l.sent.Load()
	resign(t, term)
	next := takesOver(t, won, watch, ttl/4)
	if n := l.sent.Load() - before; (n > 0 || l.beats.Load() != 2) && !watch.NotJudged(ttl/24, "%d heartbeats", n) { // the next is due then
		t.Errorf("the heir has sent %d heartbeats on its way to leadership, and has had %d streams", n, l.beats.Load())
	}
	resign(t, next)
}

// A seen stream notes which server has answered on it last.
type seen struct {
	grpc.ClientStream
	server *atomic.Uint64
}

func (s *seen) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		s.server.Store(m.(interface{ GetHeader() *pb.ResponseHeader }).GetHeader().MemberId)
	}
	return err
}

// TestStreamsApart has waiters on three servers. The heartbeats of each come to another server than its watches, and stay there.
func TestStreamsApart(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	name := coordtest.Name(t)
	term, watch := campaign(t, newCluster(t, cluster, patient), name), calm.Start(t)
	for n := range 3 { // the servers take turns: with one of the three, both begin at the same one
		var streams atomic.Int64 // of heartbeats
		var beats, watches atomic.Uint64
		c, err := etcdrig.Dial(cluster.Addrs(), grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				s, err := stream(ctx, desc, cc, method, opts...)
				switch {
				case err != nil:
					return s, err
				case strings.HasSuffix(method, "/LeaseKeepAlive"):
					streams.Add(1)
					return &seen{s, &beats}, nil
				}
				return &seen{s, &watches}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		b, err := etcd.New(c, &etcd.Options{TTL: ttl, ConnectTimeout: opening})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		behind(t, b, name)
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := s.Get(t.Context(), "record"); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() {
			if n := streams.Load(); n > 5 && !watch.NotJudged(ttl/4, "%d streams", n) {
				t.Errorf("%d streams of heartbeats were opened", n)
			}
		})
		for ctx := within(t, time.Minute); beats.Load() == 0 || beats.Load() == watches.Load(); time.Sleep(5 * time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatalf("server %x has both streams, %d of heartbeats so far", beats.Load(), streams.Load())
			}
		}
	}
	if err := term.Check(); err != nil {
		t.Error(err)
	}
}
