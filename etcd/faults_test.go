package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/coordtest"
)

func isInvalid(err error) bool { return errors.Is(err, backend.ErrInvalid) }

// TestLostJoin cuts the connection when the server has got the request to join.
func TestLostJoin(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator := admin(t, addr)
	c := newClient(t, addr)
	s := c.session(t)
	name := coordtest.Name(t)
	join(t, s, name+"-other", "x") // opens what the first call opens
	lose := func() <-chan struct{} {
		return c.proxy.LoseAnswers(func(b []byte) bool { return bytes.Contains(b, []byte("lost-value")) })
	}

	t.Run("found again", func(t *testing.T) {
		delivered := lose()
		go func() {
			<-delivered
			c.proxy.Reset()
		}()
		m := join(t, s, name, "lost-value")
		if got := keys(t, operator, name+"/"); len(got) != 1 || got[0] != name+"/"+m.Key {
			t.Errorf("the line holds %q; want %s alone", got, m.Key)
		}
		// The first request may still come through, as far as anybody knows.
		if err := s.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		lateRequest(t, operator, s, name, m.Key)
		if next := join(t, s, name, "next"); next.Key == m.Key {
			t.Errorf("key %s was used again, although a request to create it may be on its way", m.Key)
		}
	})

	t.Run("given up", func(t *testing.T) {
		name := name + "-b"
		ctx, cancel := context.WithCancel(t.Context())
		delivered := lose()
		go func() {
			<-delivered
			cancel()
			c.proxy.Reset()
		}()
		if m, err := s.Join(ctx, name, "lost-value"); !errors.Is(err, context.Canceled) {
			t.Fatalf("Join: %+v, %v; want context.Canceled", m, err)
		}
		empties(t, operator, name+"/")
		lateRequest(t, operator, s, name, keyOf(s))
	})
	if err := s.Err(); err != nil {
		t.Errorf("the session did not live on: %v", err)
	}
}

// lateRequest does what a request does that comes through late, and waits until the
// session has cleared up after it.
func lateRequest(t *testing.T, operator *clientv3.Client, s backend.Session, line, key string) {
	t.Helper()
	key = line + "/" + key
	if _, err := operator.Put(t.Context(), key, "lost-value", clientv3.WithLease(clientv3.LeaseID(etcd.Lease(s)))); err != nil {
		t.Fatal(err)
	}
	empties(t, operator, line+"/")
}

// keyOf is the key of the session's first member in a line.
func keyOf(s backend.Session) string { return strconv.FormatInt(etcd.Lease(s), 16) }

// empties waits until there is no key with the prefix.
func empties(t *testing.T, c *clientv3.Client, prefix string) {
	t.Helper()
	ctx := within(t, 10*time.Second)
	for len(keys(t, c, prefix)) > 0 {
		if ctx.Err() != nil {
			t.Fatalf("keys %q stand that nobody owns", keys(t, c, prefix))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestCompaction breaks the stream of a watch that lies behind what was compacted.
func TestCompaction(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator := admin(t, addr)
	a, c := newClient(t, addr).session(t), newClient(t, addr)
	s := c.session(t)
	name := coordtest.Name(t)
	m := join(t, a, name, "x")
	gone := make(chan error, 1)
	go func() { gone <- s.Gone(t.Context(), m) }()
	var revision int64
	for range 50 {
		resp, err := operator.Put(t.Context(), name+"-noise", "x")
		if err != nil {
			t.Fatal(err)
		}
		revision = resp.Header.Revision
	}
	if _, err := operator.Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	c.proxy.Reset()
	select {
	case err := <-gone:
		t.Fatalf("Gone has returned %v although nobody has gone", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := a.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-gone:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Gone has missed the departure")
	}
}

// TestPausedMember stops one server after the other while a candidate waits, one of
// which carries its watch. The candidate leads when the leader has resigned.
func TestPausedMember(t *testing.T) {
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	// Long enough to outlive an election among the servers on a machine that is busy.
	const ttl = 4 * time.Second
	backends := make([]*etcd.Backend, 2)
	for i := range backends {
		c := admin(t, cluster.Addrs()...)
		b, err := etcd.New(c, &etcd.Options{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		backends[i] = b
	}
	name := coordtest.Name(t)
	for i, server := range cluster.Servers() {
		ctx := within(t, time.Minute)
		leader, err := elect.New(backends[0], name, nil).Campaign(ctx)
		if err != nil {
			t.Fatal(err)
		}
		won := make(chan *elect.Term, 1)
		inFront := make(chan struct{}, 100)
		go func() {
			next, err := elect.New(backends[1], name, &elect.Options{Trace: func(ev elect.Event) {
				if ev.Kind == elect.Waiting {
					inFront <- struct{}{}
				}
			}}).Campaign(ctx)
			if err != nil {
				t.Error(err)
			}
			won <- next
		}()
		<-inFront
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := leader.Resign(ctx); err != nil {
			t.Errorf("Resign with server %d paused: %v", i, err)
		}
		next := <-won
		if next == nil {
			t.FailNow()
		}
		// The slow re-check, an election among the servers, and attempts at the paused one.
		if d := time.Since(began); d > 3*ttl {
			t.Errorf("with server %d paused the next in line led %v after the resignation", i, d)
		} else {
			t.Logf("with server %d paused the next in line led %v after the resignation", i, d.Round(time.Millisecond))
		}
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := server.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		if err := next.Resign(ctx); err != nil {
			t.Errorf("Resign: %v", err)
		}
	}
}

// TestLeaderless has a watch sit on the one server that is left, which must not
// keep it waiting when the others come back.
func TestLeaderless(t *testing.T) {
	t.Parallel()
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	open := func(i int) backend.Session {
		b, err := etcd.New(admin(t, cluster.Addrs()[i]), &etcd.Options{TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	alone, other := open(0), open(1)
	name := coordtest.Name(t)
	m := join(t, other, name, "x")
	gone := make(chan error, 1)
	go func() { gone <- alone.Gone(t.Context(), m) }()
	for _, s := range cluster.Servers()[1:] {
		s.Kill()
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := alone.Get(short, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get without a quorum: %v; want the context's error", err)
	}
	ctx := within(t, time.Minute)
	for _, s := range cluster.Servers()[1:] {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range cluster.Servers() {
		if err := s.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Leave(ctx, m); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-gone:
		if err != nil {
			t.Fatal(err)
		}
	case <-ctx.Done():
		t.Fatal("Gone has missed the departure")
	}
}

// TestWipe puts an empty etcd in the place of another.
func TestWipe(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, nil)
	c := newClient(t, server.Addrs()[0])
	s := c.session(t)
	for range 5 {
		join(t, s, "line", "x")
	}
	if err := server.Wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the session has not ended")
	}
	if err := s.Err(); !errors.Is(err, backend.ErrSessionEnded) || !errors.Is(err, backend.ErrReset) {
		t.Errorf("the session ended with %v; want ErrSessionEnded and ErrReset", err)
	}
	for range 2 {
		if _, err := c.Session(t.Context()); !errors.Is(err, backend.ErrReset) {
			t.Errorf("Session: %v; want ErrReset", err)
		}
	}
	fresh := newClient(t, server.Addrs()[0])
	join(t, fresh.session(t), "line", "x")
}

// TestLateAnswers delays answers: the deadline counts from when requests were sent.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	c := newClient(t, sharedEtcd(t).Addrs()[0])
	s := c.session(t)
	if s.TTL() != ttl {
		t.Fatalf("TTL is %v; want %v", s.TTL(), ttl)
	}
	c.proxy.Delay(coordtest.ToClient, delay)
	began, moved := time.Now(), 0
	for last := s.Deadline(); time.Since(began) < 2*ttl; {
		left := time.Until(s.Deadline())
		if time.Since(began) > ttl && left > ttl-delay {
			t.Fatalf("the deadline is %v ahead, with answers that come %v late to a TTL of %v", left, delay, ttl)
		}
		if d := s.Deadline(); d.After(last.Add(delay)) {
			last, moved = d, moved+1
		}
		time.Sleep(time.Millisecond) // samples: nothing tells that a deadline has moved
	}
	if err := s.Err(); err != nil || moved < 2 {
		t.Errorf("the session was not kept alive: the deadline moved %d times, %v", moved, err)
	}
}
