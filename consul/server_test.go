package consul_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A restart of a server with its data costs no member its position, and no watch.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true})
	addr, name := c.Addrs()[0], coordtest.Name(t)
	o := &consul.Options{TTL: 30 * time.Second}
	a, b := session(t, addr, o), session(t, addr, o)
	ma, mb := join(t, a, name, ""), join(t, b, name, "")
	gone := make(chan error, 1)
	go func() { gone <- b.Gone(t.Context(), ma) }()
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err := b.Ahead(t.Context(), mb); err != nil || p.Ahead != ma {
		t.Errorf("ahead of b is %+v, %v, want %+v", p.Ahead, err, ma)
	}
	if err := a.Leave(t.Context(), ma); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
	if p, err := b.Ahead(t.Context(), mb); err != nil || !p.First {
		t.Errorf("b stands at %+v, %v", p, err)
	}
}

// A server that leads, and has not read its log yet, does not know a session that lives. That ends nothing.
func TestRenewalBeforeTheLogIsRead(t *testing.T) {
	t.Parallel()
	b, name := open(t, server(t), &consul.Options{TTL: time.Minute}), coordtest.Name(t)
	var young atomic.Bool
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) == "renewal" && young.CompareAndSwap(true, false) {
			body := fmt.Sprintf("Session id '%s' not found", path.Base(req.URL.Path))
			return &http.Response{StatusCode: http.StatusNotFound, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	m := join(t, s, name, "")
	young.Store(true)
	if err := consul.Renew(s); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("a renewal that a young leader answered returned %v, want ErrUnavailable", err)
	}
	if p, err := s.Ahead(t.Context(), m); err != nil || !p.First {
		t.Errorf("it stands at %+v, %v", p, err)
	}
	if err := consul.Renew(s); err != nil {
		t.Error(err)
	}
}

// An answer that lacks what Consul says in each does not come from it.
func TestAnswerThatLacksSomething(t *testing.T) {
	t.Parallel()
	b, name := open(t, server(t), nil), coordtest.Name(t)
	var lacks atomic.Bool
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		switch {
		case req.URL.Query().Has("recurse") && lacks.CompareAndSwap(true, false):
			return made(req, http.StatusOK, "[null]"), nil
		case req.URL.Path == "/v1/txn" && lacks.CompareAndSwap(true, false):
			return made(req, http.StatusOK, `{"Results":[],"Errors":null}`), nil
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	lacks.Store(true)
	if _, err := s.Put(t.Context(), name, nil, nil); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Put returned %v, want ErrUnavailable", err)
	}
	if _, err := s.Put(t.Context(), name, nil, nil); err != nil {
		t.Fatal(err)
	}
	lacks.Store(true)
	if all, err := s.Survey(t.Context()); err != nil || all[name].Record.Version == backend.Absent {
		t.Errorf("Survey returned %+v, %v", all[name], err)
	}
}

// A cluster that was rebuilt has smaller indexes: tokens would fall.
func TestServerLosesItsData(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, nil)
	addr, name := c.Addrs()[0], coordtest.Name(t)
	b := open(t, addr, nil)
	s := sessionOf(t, b)
	m := join(t, s, name, "")
	var v backend.Version
	for range 200 { // more than a server writes by itself when it starts
		var err error
		if v, err = s.Put(t.Context(), name, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	gone := make(chan error, 1)
	go func() { gone <- s.Gone(t.Context(), m) }()
	if err := c.Wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil && !errors.Is(err, backend.ErrSessionEnded) {
		t.Errorf("Gone returned %v", err)
	}
	ended(t, s, long/2)
	for range 2 {
		if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrReset) {
			t.Fatalf("Session at a server without data returned %v, want ErrReset", err)
		}
	}
	// A backend that has not seen the old data cannot know.
	fresh := session(t, addr, nil)
	if m := join(t, fresh, name, ""); m.Position >= uint64(v) {
		t.Errorf("the new log is at %d, the old was at %d: nothing was tested", m.Position, v)
	}
}

// A snapshot that is restored into a running cluster turns back the keys and not the log.
// Sessions that wait at that moment are told, as nothing was written since.
func TestServerRestoresSnapshot(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true})
	addr, name := c.Addrs()[0], coordtest.Name(t)
	// A session whose query arrives later than the restore finds out after four TTL.
	a, bb := session(t, addr, nil), open(t, addr, &consul.Options{TTL: 10 * time.Second})
	asked := make(chan struct{}, 100)
	consul.OnRequest(bb, func(req *http.Request) {
		if kindOf(req) == "query" {
			asked <- struct{}{}
		}
	})
	b := sessionOf(t, bb)
	restore := snapshot(t, admin(t, addr))
	m := join(t, a, name, "")
	waiting := map[string]chan error{"Gone": make(chan error, 1), "Watch": make(chan error, 1)}
	go func() { waiting["Gone"] <- b.Gone(t.Context(), m) }()
	go func() {
		_, err := b.Watch(t.Context(), name, backend.Absent)
		waiting["Watch"] <- err
	}()
	<-asked
	<-asked
	if _, err := b.Line(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	restore()
	for what, c := range waiting {
		select {
		case err := <-c:
			if !errors.Is(err, backend.ErrReset) || !errors.Is(err, backend.ErrSessionEnded) {
				t.Errorf("%s returned %v, want ErrSessionEnded and ErrReset", what, err)
			}
		case <-within(t, time.Minute).Done():
			t.Fatalf("%s has not returned although the keys of Consul have gone back", what)
		}
	}
	for range 2 { // for good
		if _, err := bb.Session(t.Context()); !errors.Is(err, backend.ErrReset) {
			t.Errorf("Session returned %v, want ErrReset", err)
		}
	}
}

// A candidate that may read only its own election is told of a restore, whatever it has written last.
func TestRestoreWithTheRightsOfACandidate(t *testing.T) {
	t.Parallel()
	c := newSecuredWith(t, &coordtest.ConsulOptions{Durable: true})
	c.ttl = 10 * time.Second // a query that arrives later than the restore is over after four TTL
	candidate, _, _ := policies(t, "jobs")
	a, bb := c.sessionAs(t, wide...), c.openAs(t, c.token(t, candidate...).SecretID)
	asked := make(chan struct{}, 100)
	consul.OnRequest(bb, func(req *http.Request) {
		if kindOf(req) == "query" {
			asked <- struct{}{}
		}
	})
	b := sessionOf(t, bb)
	first := join(t, a, "jobs", "")
	join(t, b, "jobs", "")
	restore := snapshot(t, c.root)
	if _, err := b.Put(t.Context(), "jobs"+naming.History, nil, nil); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { gone <- b.Gone(t.Context(), first) }()
	<-asked
	if _, err := b.Line(t.Context(), "jobs"); err != nil { // the query is at the agent by now
		t.Fatal(err)
	}
	restore()
	select {
	case err := <-gone:
		if !errors.Is(err, backend.ErrReset) || !errors.Is(err, backend.ErrSessionEnded) {
			t.Errorf("Gone returned %v, want ErrSessionEnded and ErrReset", err)
		}
	case <-within(t, time.Minute).Done():
		t.Error("Gone has not returned although the keys of Consul have gone back")
	}
}

// Once somebody has written after a restore, the indexes are where they were. A backend
// that has seen a later header of the election is told all the same.
func TestRestoreThatTheLogHasOvertaken(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true})
	addr, name := c.Addrs()[0], coordtest.Name(t)
	raise := func(s backend.Session, fence uint64) {
		t.Helper()
		if _, err := s.Put(t.Context(), name, backend.Header{Fence: fence}.Encode(), nil); err != nil {
			t.Fatal(err)
		}
	}
	a, b, other := session(t, addr, nil), session(t, addr, nil), session(t, addr, nil)
	raise(a, 1)
	restore := snapshot(t, admin(t, addr))
	raise(a, 1000)
	if _, err := b.Line(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	restore()
	join(t, other, name+"-another", "")
	if l, err := b.Line(t.Context(), name); !errors.Is(err, backend.ErrReset) || !errors.Is(err, backend.ErrSessionEnded) {
		t.Errorf("Line returned %+v, %v, want ErrSessionEnded and ErrReset", l, err)
	}
}

// Members that have left stand again after a restore. If their session lives, it
// removes them: nobody else would.
func TestRestoredMemberIsRemoved(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true})
	addr, name := c.Addrs()[0], coordtest.Name(t)
	a, other := session(t, addr, nil), session(t, addr, nil)
	left, stays := join(t, a, name, "left"), join(t, a, name, "stays")
	restore := snapshot(t, admin(t, addr))
	if err := a.Leave(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	restore()
	join(t, other, name+"-another", "")
	p, err := a.Ahead(t.Context(), stays)
	if err != nil || p.Ahead != left {
		t.Fatalf("ahead is %+v (error: %v), want %+v, which has left: nothing is tested", p, err, left)
	}
	if err := other.Gone(within(t, time.Minute), left); err != nil {
		t.Fatal("a member that nobody owns: ", err)
	}
	if p, err := a.Ahead(t.Context(), stays); err != nil || !p.First {
		t.Errorf("the other member of that session stands at %+v, %v", p, err)
	}
}

// snapshot takes a snapshot, and returns a func that restores it.
func snapshot(t *testing.T, op *api.Client) (restore func()) {
	t.Helper()
	s, _, err := op.Snapshot().Save(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return func() {
		t.Helper()
		if err := op.Snapshot().Restore(nil, s); err != nil {
			t.Fatal(err)
		}
	}
}

// Consul removes the node of a server that has failed, and with it the sessions that are
// bound to it, long before their time is over. Sessions on a node of our own stay.
func TestFailedServerTakesItsSessionsAlong(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Nodes: 3})
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var failing, healthy *coordtest.Server
	for _, s := range c.Servers() {
		switch {
		case s == leader:
		case failing == nil:
			failing = s
		default:
			healthy = s
		}
	}
	name := coordtest.Name(t)
	bound := session(t, failing.Addr(), &consul.Options{TTL: time.Minute, AgentNode: true})
	ours := session(t, failing.Addr(), &consul.Options{TTL: time.Minute})
	mb, mo := join(t, bound, name, "bound"), join(t, ours, name, "ours")
	observer := session(t, healthy.Addr(), &consul.Options{TTL: time.Minute})

	failing.Kill()
	killed := time.Now()
	if err := observer.Gone(within(t, time.Minute), mb); err != nil {
		t.Fatal(err)
	}
	t.Logf("the session of the server's node ended %v after the server, its deadline is in %v",
		time.Since(killed).Round(time.Millisecond), time.Until(bound.Deadline()).Round(time.Second))
	if time.Until(bound.Deadline()) <= 0 {
		t.Error("the holder knew before; the option's warning is out of date")
	}
	line, err := observer.Line(t.Context(), name)
	if err != nil || len(line.Members) != 1 || line.Members[0] != mo {
		t.Errorf("the line is %+v (error: %v), want %+v alone", line.Members, err, mo)
	}
}

// A change of Consul's leader ends neither sessions nor waits.
func TestLeaderChange(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Nodes: 3})
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var follower *coordtest.Server
	for _, s := range c.Servers() {
		if s != leader {
			follower = s
		}
	}
	name := coordtest.Name(t)
	o := &consul.Options{TTL: 30 * time.Second}
	a, b := session(t, follower.Addr(), o), session(t, follower.Addr(), o)
	ma, mb := join(t, a, name, ""), join(t, b, name, "")
	gone := make(chan error, 1)
	go func() { gone <- b.Gone(t.Context(), ma) }()
	leader.Kill()
	// Consul is writable again some seconds later. Leave waits for that.
	if err := a.Leave(within(t, time.Minute), ma); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-gone:
		if err != nil {
			t.Fatal(err)
		}
	case <-within(t, time.Minute).Done():
		t.Fatal("the wait was not told of the departure after the change of leader")
	}
	if p, err := b.Ahead(t.Context(), mb); err != nil || !p.First {
		t.Errorf("b stands at %+v, %v", p, err)
	}
}

// While nothing answers, calls end with their context, and the session at its deadline.
func TestPausedServer(t *testing.T) {
	t.Parallel()
	const ttl = 2 * ttl // for a busy machine
	c := coordtest.NewConsul(t, nil)
	s := session(t, c.Addrs()[0], &consul.Options{TTL: ttl})
	name := coordtest.Name(t)
	m := join(t, s, name, "")
	if err := c.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), ttl/10, errEnough)
	defer cancel()
	watch, ends := calm.Start(t), calm.Start(t)
	if _, err := s.Ahead(ctx, m); !errors.Is(err, errEnough) {
		t.Errorf("Ahead returned %v, want the cause of its context", err)
	}
	watch.Within(ttl/4, "Ahead with a context of %v", ttl/10)
	if _, err := s.Ahead(t.Context(), m); !errors.Is(err, backend.ErrSessionEnded) {
		t.Errorf("Ahead returned %v, want ErrSessionEnded after the deadline", err)
	}
	ends.Within(ttl+ttl/2, "the end of the session")
	if err := c.Resume(); err != nil {
		t.Fatal(err)
	}
	next := session(t, c.Addrs()[0], nil)
	mn := join(t, next, name, "")
	if err := next.Gone(within(t, time.Minute), m); err != nil {
		t.Fatal(err)
	}
	if p, err := next.Ahead(t.Context(), mn); err != nil || !p.First {
		t.Errorf("the next member stands at %+v, %v", p, err)
	}
}
