package etcd_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// TestHeartbeatTwice does to a leader what a pause of etcd's leader does. Its stream is
// silent. So is the next one, whose server does not know of the new leader yet, and so is
// one to the paused server. The term outlives that.
func TestHeartbeatTwice(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Second // there is time for three attempts
	var opened, silent atomic.Int64
	c, err := etcdrig.Dial(sharedEtcd(t).Addrs(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := stream(ctx, desc, cc, method, opts...)
			if err != nil || !strings.HasSuffix(method, "/LeaseKeepAlive") {
				return s, err
			}
			return &heartbeats{s, opened.Add(1), &silent}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b, err := etcd.New(c, &etcd.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	term := campaign(t, b, coordtest.Name(t))
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t, 4*ttl)
	renewed := func(after time.Time) {
		t.Helper()
		for s.Deadline().Before(after) { // nothing tells that a deadline has moved
			if term.Check() != nil || ctx.Err() != nil {
				t.Fatalf("the term has ended, with %d streams opened: %v", opened.Load(), term.Check())
			}
			time.Sleep(time.Millisecond)
		}
	}
	renewed(s.Deadline().Add(time.Second)) // there is a stream
	silent.Store(opened.Load() + 2)
	renewed(s.Deadline().Add(time.Second))
	if opened.Load() <= silent.Load() {
		t.Error("a silent stream has renewed the lease")
	}
}

// heartbeats is a stream. It gets no answers if its number is at most silent.
type heartbeats struct {
	grpc.ClientStream
	nth    int64
	silent *atomic.Int64
}

func (h *heartbeats) RecvMsg(m any) error {
	err := h.ClientStream.RecvMsg(m)
	if err == nil && h.nth <= h.silent.Load() {
		<-h.Context().Done()
		return context.Cause(h.Context())
	}
	return err
}

// TestWarmHeir has two handovers follow each other when the sessions are older than their
// TTL. Nobody sends a heartbeat on the way to leadership: the look that finds nobody in front
// proves the newest one.
func TestWarmHeir(t *testing.T) {
	t.Parallel()
	addr, name := sharedEtcd(t).Addrs()[0], coordtest.Name(t)
	var sent [3]atomic.Int64 // heartbeats
	var won [3]<-chan *elect.Term
	var term *elect.Term
	for i := range won {
		c, err := etcdrig.Dial([]string{addr}, grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				s, err := stream(ctx, desc, cc, method, opts...)
				if err != nil || !strings.HasSuffix(method, "/LeaseKeepAlive") {
					return s, err
				}
				return &counted{s, &sent[i]}, nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		b, err := etcd.New(c, &etcd.Options{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		if i == 0 {
			term = campaign(t, b, name)
		} else {
			won[i] = behind(t, b, name)
		}
	}
	time.Sleep(ttl * 3 / 2) // what grants and looks have proven is over
	for i := range 2 {
		before := sent[i+1].Load()
		for ctx := within(t, ttl); sent[i+1].Load() == before && ctx.Err() == nil; { // then none is due
			time.Sleep(time.Millisecond)
		}
		time.Sleep(ttl / 40) // it is answered
		before = sent[i+1].Load()
		resign(t, term)
		term = takesOver(t, won[i+1], time.Now(), takeover)
		if n := sent[i+1].Load() - before; n > 0 {
			t.Errorf("handover %d: the heir has sent %d heartbeats on its way to leadership", i+1, n)
		}
	}
	resign(t, term)
}

// counted is a stream that counts what is sent on it.
type counted struct {
	grpc.ClientStream
	sent *atomic.Int64
}

func (c *counted) SendMsg(m any) error {
	c.sent.Add(1)
	return c.ClientStream.SendMsg(m)
}
