package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func isInvalid(err error) bool { return errors.Is(err, backend.ErrInvalid) }

// TestLostJoin cuts the connection when the server has received the request to join.
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
		// For all that the session knows, the first request may still take effect.
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
		if m, err := s.Join(ctx, name, "lost-value", ""); !errors.Is(err, context.Canceled) {
			t.Fatalf("Join: %+v, %v; want context.Canceled", m, err)
		}
		empties(t, operator, name+"/")
		lateRequest(t, operator, s, name, keyOf(s))
	})
	if err := s.Err(); err != nil {
		t.Errorf("the session did not live on: %v", err)
	}
}

// TestForeignKeyOnLease has a key stand under the name of a session's first member, and on its lease, as after a restore from a backup. The
// session joins behind it, and removes it.
func TestForeignKeyOnLease(t *testing.T) {
	t.Parallel()
	addr, name := sharedEtcd(t).Addrs()[0], coordtest.Name(t)
	operator, c := admin(t, addr), newClient(t, addr)
	s := c.session(t)
	put := func(line string) uint64 {
		resp, err := operator.Put(t.Context(), line+"/"+keyOf(s), "old", clientv3.WithLease(clientv3.LeaseID(etcd.Lease(s))))
		if err != nil {
			t.Fatal(err)
		}
		return uint64(resp.Header.Revision)
	}
	joins := func(line string, old uint64) {
		t.Helper()
		m := join(t, s, line, "lost-value")
		if m.Position <= old {
			t.Errorf("%+v; want a position behind %d", m, old)
		}
		for ctx := within(t, time.Minute); len(keys(t, operator, line+"/")) > 1; time.Sleep(5 * time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatalf("keys %q stand; want %s alone", keys(t, operator, line+"/"), m.Key)
			}
		}
		standsFirst(t, s, m)
	}
	joins(name, put(name))

	// The answer is lost, but the key is older than the call.
	old := put(name + "-b")
	join(t, s, name+"-other", "x") // tells the session of a revision since
	delivered := c.proxy.LoseAnswers(func(b []byte) bool { return bytes.Contains(b, []byte("lost-value")) })
	go func() {
		<-delivered
		c.proxy.Reset()
	}()
	joins(name+"-b", old)
}

// lateRequest does what a request does that takes effect late, and waits until the
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
	ctx := within(t, time.Minute)
	for len(keys(t, c, prefix)) > 0 {
		if ctx.Err() != nil {
			t.Fatalf("keys %q stand that nobody owns", keys(t, c, prefix))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestCompaction breaks the stream of a watch whose revision has been compacted.
func TestCompaction(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewEtcd(t, nil).Addrs()[0] // compaction breaks watches of etcd's own Go client
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
	case <-time.After(time.Minute):
		t.Fatal("Gone has missed the departure")
	}
}

// TestWipe puts an empty etcd in the place of another.
func TestWipe(t *testing.T) {
	t.Parallel()
	server := coordtest.NewEtcd(t, nil)
	c := newClientOf(t, server.Addrs()[0], 3*ttl) // outlives a restart
	s := c.session(t)
	for range 5 {
		join(t, s, "line", "x")
	}
	if err := server.Wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
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

// TestTwoClusters uses a client whose servers are of two clusters.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	b, err := etcd.New(admin(t, sharedEtcd(t).Addrs()[0], coordtest.NewEtcd(t, nil).Addrs()[0]), &etcd.Options{TTL: ttl, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	for ctx := within(t, time.Minute); err == nil; { // its requests go to both in turn
		var s backend.Session
		if s, err = b.Session(ctx); err == nil {
			_, err = s.Get(ctx, "record")
		}
	}
	if !errors.Is(err, backend.ErrReset) || !strings.Contains(err.Error(), "check that all servers of the client are of one cluster") {
		t.Errorf("%v; want ErrReset that says what to look at", err)
	}
}

// TestUnproven makes heartbeats be answered in a term that etcd is not in any more. A
// leader stands down by its deadline. A waiter loses nothing.
func TestUnproven(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	name := coordtest.Name(t)
	watch := calm.Start(t)
	c, other := newClientOf(t, addr, ttl), newClientOf(t, addr, ttl)
	term := campaign(t, c, name)
	s, waiter := c.session(t), other.session(t)
	join(t, waiter, name, "x")
	time.Sleep(ttl * 3 / 2) // heartbeats are needed and proven
	if err := term.Check(); err != nil {
		if !watch.NotJudged(ttl/4, "the term has ended: %v", err) {
			t.Fatal(err)
		}
		return
	}
	other.meter.otherTerm.Store(true)
	endsUnproven(t, c, s)
	if term.Check() == nil {
		t.Error("the term goes on")
	}
	time.Sleep(ttl / 2)
	if err := waiter.Err(); err != nil && !watch.NotJudged(ttl/4, "the session of a waiter has ended: %v", err) {
		t.Errorf("the session of a waiter has ended: %v", err)
	}
}

// TestUnprovenBehindGate is TestUnproven for a member just behind a gate, which may lead
// together with a member on another coordinator.
func TestUnprovenBehindGate(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	name := coordtest.Name(t)
	owner, c := newClient(t, addr).session(t), newClientOf(t, addr, ttl)
	gate := join(t, owner, name, "gate")
	h := backend.Header{Gate: gate.Position}
	if err := owner.Pin(t.Context(), gate, h, backend.Absent); err != nil {
		t.Fatal(err)
	}
	s, watch := c.session(t), calm.Start(t)
	if p, err := s.Ahead(t.Context(), join(t, s, name, "x")); err != nil || p.Ahead.Key != gate.Key {
		t.Fatalf("behind a gate: %+v, %v", p, err)
	}
	time.Sleep(ttl * 3 / 2) // heartbeats are needed and proven
	if err := s.Err(); err != nil {
		if !watch.NotJudged(ttl/4, "the session has ended: %v", err) {
			t.Fatal(err)
		}
		return
	}
	endsUnproven(t, c, s)
}

// endsUnproven makes heartbeats of c be answered in another term than etcd's. It waits
// for the end of the session, which must come within a TTL.
func endsUnproven(t *testing.T, c *client, s backend.Session) {
	t.Helper()
	watch := calm.Start(t)
	c.meter.otherTerm.Store(true)
	bound := time.Now().Add(s.TTL()) // after the newest that was proven
	for ctx := within(t, time.Minute); s.Err() == nil; time.Sleep(time.Millisecond) {
		if deadline := s.Deadline(); deadline.After(bound) || ctx.Err() != nil {
			t.Fatalf("the session lives on, and its deadline is %v ahead", time.Until(deadline))
		}
	}
	watch.Within(s.TTL(), "until the session ended it")
}

// TestStalledLeader pauses etcd's leader while the others elect another, and resumes it
// when it is cut off from them but not from its client. For some time it answers
// heartbeats as if it still led; the others end the lease all the same. A leader of ours
// must not count on such answers. Whether there are any depends on what the server does
// first when it goes on: about every second time.
func TestStalledLeader(t *testing.T) {
	t.Parallel()
	const ttl = 6 * time.Second
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	stalled := leader(t, cluster)
	others := slices.Delete(slices.Clone(cluster.Servers()), stalled, stalled+1)
	operator := admin(t, others[0].Addr(), others[1].Addr())
	c := newClientOf(t, cluster.Addrs()[stalled], ttl)
	name := coordtest.Name(t)
	term := campaign(t, c, name)
	s := c.session(t)

	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(cluster.Servers()[stalled].Pause())
	time.Sleep(ttl/2 + ttl/12)                               // the others elect; the session is to see the end of the pause
	check(errors.Join(others[0].Pause(), others[1].Pause())) // a network that fails: those who run cannot talk
	check(cluster.Servers()[stalled].Resume())
	time.Sleep(ttl / 15) // heartbeats are answered, or not
	check(cluster.Servers()[stalled].Pause())
	check(errors.Join(others[0].Resume(), others[1].Resume()))
	t.Cleanup(func() { cluster.Servers()[stalled].Resume() })

	for ctx := within(t, time.Minute); ; time.Sleep(5 * time.Millisecond) {
		short, cancel := context.WithTimeout(ctx, time.Second)
		resp, err := operator.Get(short, name+"/"+term.Member().Key)
		cancel()
		if ctx.Err() != nil {
			t.Fatalf("the lease has not ended: %v", err)
		}
		if err == nil && len(resp.Kvs) == 0 {
			break
		}
	}
	if term.Check() == nil || s.Err() == nil {
		t.Errorf("etcd has ended the session; its deadline is %v ahead, Check says %v", time.Until(s.Deadline()), term.Check())
	}
}

// TestLateAnswers delays answers: the deadline counts from when requests were sent.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	c, watch := newClientOf(t, sharedEtcd(t).Addrs()[0], ttl), calm.Start(t)
	s := c.session(t)
	if s.TTL() != ttl {
		t.Fatalf("TTL is %v; want %v", s.TTL(), ttl)
	}
	c.proxy.Delay(proxy.ToClient, delay)
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
	if err := s.Err(); (err != nil || moved < 2) && !watch.NotJudged(ttl/4, "the deadline moved %d times, %v", moved, err) {
		t.Errorf("the session was not kept alive: the deadline moved %d times, %v", moved, err)
	}
}
