package etcd_test

import (
	"context"
	"log/slog"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// TestHeartbeatTwice does to a leader what a pause of etcd's leader does. Its stream is
// silent. So is the next one, whose server does not know of the new leader yet, and so is
// one to the paused server. The term outlives that.
func TestHeartbeatTwice(t *testing.T) {
	t.Parallel()
	h := newHushed(t, 10*time.Second) // there is time for three attempts
	if !h.renews(t) {                 // there is a stream
		return
	}
	h.silent.Store(h.opened.Load() + 2)
	if h.renews(t) && h.opened.Load() <= h.silent.Load() {
		t.Error("a silent stream has renewed the lease")
	}
}

// TestSilentServerTwice has the server that stands still be asked twice by a leader whose term has
// just begun: by its first heartbeat, and then for the proof of the next one. With a session time
// as short as this there is no time to wait for both.
func TestSilentServerTwice(t *testing.T) {
	t.Parallel()
	h := newHushed(t, ttl)
	h.proofToo.Store(true)
	h.silent.Store(1)
	for h.opened.Load() < 2 || h.unproven.Load() { // a heartbeat may have been on its way before
		if !h.renews(t) {
			return
		}
	}
	h.renews(t)
}

// tardy is longer than the first attempt of a heartbeat or of its proof waits.
const tardy = 1200 * time.Millisecond

// TestLateProof has all servers take long for what goes through the quorum, and renew leases at once. The term outlives that.
func TestLateProof(t *testing.T) {
	t.Parallel()
	h := newHushed(t, 12*time.Second)
	h.late.Store("MemberList", true)
	for range 2 {
		if !h.renews(t) {
			return
		}
	}
}

// TestLateGrant makes etcd change its leader, and has all servers take long for what goes through the quorum then. The term outlives that.
func TestLateGrant(t *testing.T) {
	t.Parallel()
	outlivesMove(t, func(h *hushed) {
		h.late.Store("MemberList", true)
		h.late.Store("LeaseGrant", true)
		h.late.Store("Txn", true)
	})
}

// TestLostGrant makes etcd change its leader, and loses the answers to the first copies of the request for a fresh lease. The next copies
// find the lease.
func TestLostGrant(t *testing.T) {
	t.Parallel()
	outlivesMove(t, func(h *hushed) { h.lose(func(nth int) bool { return nth <= 2 }) })
}

// TestGrantAtLaggingServer makes etcd change its leader while a server lags behind, which gets every other request for a lease: it is done there,
// and answered too late. The other server finds the lease, so that it is taken at once.
func TestGrantAtLaggingServer(t *testing.T) {
	t.Parallel()
	var of *hushed
	outlivesMove(t, func(h *hushed) {
		of = h
		h.lose(func(nth int) bool { return nth%2 == 1 })
	})
	of.mu.Lock()
	defer of.mu.Unlock()
	if n := of.grants; n > 2 && !of.watch.NotJudged(of.session.TTL()/4, "%d requests", n) {
		t.Errorf("the lease took %d requests", n)
	}
}

// outlivesMove makes etcd change its leader, in spite of what hinder does, and fails the test if the term does not outlive that, by one fresh
// lease.
func outlivesMove(t *testing.T, hinder func(*hushed)) {
	t.Helper()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	h := newHushed(t, 12*time.Second, cluster.Addrs()...)
	operator, old := admin(t, cluster.Addrs()...), etcd.Lease(h.session)
	hinder(h)
	moveLeader(t, cluster)
	if h.renews(t); etcd.Lease(h.session) == old {
		return // the machine is too busy
	}
	all, err := operator.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(all.Leases); n > 2 && !h.watch.NotJudged(h.session.TTL()/4, "%d leases", n) { // the old one is not revoked
		t.Errorf("etcd has %d leases", n)
	}
}

// A hushed leader is one whose requests are not all answered.
type hushed struct {
	opened, silent atomic.Int64 // streams of heartbeats; the first so many are silent
	proofToo       atomic.Bool  // and the request for a proof that follows
	unproven       atomic.Bool  // the next one has no answer
	late           sync.Map     // by name, the methods whose answers are held up
	term           *elect.Term
	session        backend.Session
	watch          *calm.Stopwatch

	mu     sync.Mutex // held while etcd grants a lease: one after the other
	grants int        // how many requests for a lease there were since lose was called
	lost   func(nth int) bool
}

// lose has the answers to requests for a lease be lost, by what lost says of each.
func (h *hushed) lose(lost func(nth int) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grants, h.lost = 0, lost
}

// grant sends a request for a lease, and reports whether its answer is lost.
func (h *hushed) grant(send func() error) (err error, lost bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err = send()
	h.grants++
	return err, h.lost != nil && h.lost(h.grants)
}

// newHushed returns a leader whose requests are all answered so far. Its servers are the shared one if none are given.
func newHushed(t *testing.T, ttl time.Duration, addrs ...string) *hushed {
	h := &hushed{watch: calm.Start(t)}
	if len(addrs) == 0 {
		addrs = sharedEtcd(t).Addrs()
	}
	c, err := etcdrig.Dial(addrs, grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := stream(ctx, desc, cc, method, opts...)
			if err != nil || !strings.HasSuffix(method, "/LeaseKeepAlive") {
				return s, err
			}
			return &heartbeats{s, h.opened.Add(1), h}, nil
		}), grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if strings.HasSuffix(method, "/MemberList") && h.unproven.CompareAndSwap(true, false) {
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			}
			if _, late := h.late.Load(path.Base(method)); late {
				err := invoke(context.WithoutCancel(ctx), method, req, reply, cc, opts...) // etcd does it in any case
				select {
				case <-time.After(tardy):
					return err
				case <-ctx.Done():
					return status.FromContextError(ctx.Err()).Err()
				}
			}
			if path.Base(method) != "LeaseGrant" {
				return invoke(ctx, method, req, reply, cc, opts...)
			}
			err, lost := h.grant(func() error { return invoke(ctx, method, req, reply, cc, opts...) })
			if lost {
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			}
			return err
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
	h.term = campaign(t, b, coordtest.Name(t))
	if h.session, err = b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// renews waits until the deadline has moved. The term must outlive that, unless the machine is too busy.
func (h *hushed) renews(t *testing.T) bool {
	t.Helper()
	ctx := within(t, time.Minute)
	for after := h.session.Deadline().Add(time.Second); h.session.Deadline().Before(after); { // nothing tells
		if h.term.Check() != nil || ctx.Err() != nil {
			if !h.watch.NotJudged(h.session.TTL()/4, "the term has ended: %v", h.term.Check()) {
				t.Fatalf("the term has ended, with %d streams opened: %v", h.opened.Load(), h.term.Check())
			}
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// TestWarning has heartbeats fail twice at once, as while etcd elects a leader. That is no reason to warn.
func TestWarning(t *testing.T) {
	t.Parallel()
	var told output
	var opened atomic.Int64
	c, err := etcdrig.Dial(sharedEtcd(t).Addrs(), grpc.WithChainStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if path.Base(method) == "LeaseKeepAlive" && opened.Add(1) <= 3 {
				return nil, rpctypes.ErrGRPCNoLeader
			}
			return stream(ctx, desc, cc, method, opts...)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b, err := etcd.New(c, &etcd.Options{TTL: 10 * time.Second, ConnectTimeout: opening, Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	if !renews(t, s)() {
		return
	}
	if told := told.String(); told != "" && !watch.NotJudged(time.Second, "%s", told) {
		t.Error(told)
	}
}

// heartbeats is a stream. It gets no answers if its number is at most silent.
type heartbeats struct {
	grpc.ClientStream
	nth int64
	of  *hushed
}

func (h *heartbeats) RecvMsg(m any) error {
	err := h.ClientStream.RecvMsg(m)
	if err == nil && h.nth <= h.of.silent.Load() {
		h.of.unproven.Store(h.of.proofToo.Load())
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
		b, err := etcd.New(c, &etcd.Options{TTL: ttl, ConnectTimeout: opening})
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
		watch, before := calm.Start(t), sent[i+1].Load()
		for ctx := within(t, ttl); sent[i+1].Load() == before && ctx.Err() == nil; { // then none is due
			time.Sleep(time.Millisecond)
		}
		time.Sleep(ttl / 40) // it is answered
		before = sent[i+1].Load()
		resign(t, term)
		term = takesOver(t, won[i+1], calm.Start(t), takeover)
		if n := sent[i+1].Load() - before; n > 0 && !watch.NotJudged(ttl/4, "%d heartbeats", n) { // the next is due then
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
