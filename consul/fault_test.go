package consul_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// within returns a context that fails a test which would otherwise hang.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, fmt.Errorf("the test waited %v in vain", d))
	t.Cleanup(cancel)
	return ctx
}

// ended waits for the end of the session, which is to come within d, and returns why it ended.
func ended(t testing.TB, s backend.Session, d time.Duration) error {
	t.Helper()
	watch := calm.Start(t)
	select {
	case <-s.Done():
	case <-within(t, time.Minute).Done():
		t.Fatal("the session lives on after a minute")
	}
	watch.Within(d, "the end of the session")
	return s.Err()
}

// members returns the keys in the line, as an operator sees them.
func members(t testing.TB, addr, name string) []string {
	t.Helper()
	keys, _, err := admin(t, addr).KV().Keys(name+"/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// A key that stands already where a member is to be created was imported, or written by hand, if no session
// has ever locked it. Then it is not that member: nothing would end it with its session.
func TestJoinWhereAKeyWasImported(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	s := session(t, addr, nil)
	first := join(t, s, name, "")
	if _, err := admin(t, addr).KV().Put(&api.KVPair{Key: name + "/" + first.Key + "-2"}, nil); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Join(t.Context(), name, "", ""); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("got %+v, %v; want ErrNotMember", m, err)
	}
	if m := join(t, s, name, ""); m.Pinned || m.Key != first.Key+"-3" {
		t.Errorf("the next member is %+v", m)
	}
}

// A departure costs one notification and nothing else: no request of its waiter, and
// nothing at all of the other waiters.
func TestDepartureWakesOneAndAsksNothing(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	const n = 40
	// The TTL is so long that no renewal is among the requests.
	b := open(t, addr, &consul.Options{TTL: time.Minute})
	requests := consul.CountRequests(b)
	s := sessionOf(t, b)
	var line []backend.Member
	for range n {
		line = append(line, join(t, s, name, ""))
	}
	begun := requests.Load()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan int, n)
	for i := range n - 1 {
		go func() {
			if s.Gone(ctx, line[i]) == nil {
				gone <- i
			}
		}()
	}
	awaitRequests := func(want int64) {
		for deadline := within(t, time.Minute); requests.Load() < want; {
			select {
			case <-time.After(time.Millisecond):
			case <-deadline.Done():
				t.Fatalf("%d requests, want %d", requests.Load(), want)
			}
		}
	}
	awaitRequests(begun + n - 1)

	kv := admin(t, addr).KV()
	before := requests.Load()
	for _, i := range []int{20, 7} {
		if _, err := kv.Delete(name+"/"+line[i].Key, nil); err != nil {
			t.Fatal(err)
		}
		if got := <-gone; got != i {
			t.Errorf("member %d went, and who waited for %d woke", i, got)
		}
	}
	if got := requests.Load() - before; got != 0 {
		t.Errorf("two departures cost %d requests, want 0", got)
	}
	select {
	case i := <-gone:
		t.Errorf("who waited for %d woke too", i)
	default:
	}
	cancel()
}

// A server works on a query until its time is over, whether it was cancelled or not. So a
// caller that waits again and again must not cause a query each time.
func TestWaitingAgainIsOneQuery(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	b := open(t, addr, &consul.Options{TTL: time.Minute})
	requests := consul.CountRequests(b)
	s := sessionOf(t, b)
	m := join(t, s, name, "")
	before, watch := requests.Load(), calm.Start(t)
	for range 100 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errEnough)
		if err := s.Gone(ctx, m); !errors.Is(err, errEnough) {
			t.Fatalf("Gone returned %v, want the cause of its context", err)
		}
		cancel()
	}
	// A query without a waiter ends after a second.
	if n := requests.Load() - before; n != 1 && !watch.NotJudged(time.Second, "%d requests", n) {
		t.Errorf("100 waits one after the other sent %d requests, want 1", n)
	}
}

// The key of a member that was pinned, moved to another session of Consul, or written over
// by an operator has changed since it was created.
func TestWaitingAgainForChangedKeyIsOneQuery(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	b := open(t, addr, &consul.Options{TTL: time.Minute})
	var queries atomic.Int64
	blocks := make(chan struct{})
	consul.OnRequest(b, func(req *http.Request) {
		// The first query is answered at once, as the key has changed since.
		if kindOf(req) == "query" && queries.Add(1) == 2 {
			close(blocks)
		}
	})
	s := sessionOf(t, b)
	m := join(t, s, name, "was")
	if _, err := admin(t, addr).KV().Put(&api.KVPair{Key: name + "/" + m.Key, Value: []byte("is")}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- s.Gone(ctx, m) }()
	select {
	case <-blocks:
	case err := <-gone:
		t.Fatalf("Gone returned %v", err)
	}
	cancel(errEnough)
	watch := calm.Start(t)
	if err := <-gone; !errors.Is(err, errEnough) {
		t.Fatalf("Gone returned %v, want the cause of its context", err)
	}
	for range 100 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errEnough)
		if err := s.Gone(ctx, m); !errors.Is(err, errEnough) {
			t.Fatalf("Gone returned %v, want the cause of its context", err)
		}
		cancel()
	}
	if n := queries.Load(); n != 2 && !watch.NotJudged(time.Second, "%d queries", n) { // see TestWaitingAgainIsOneQuery
		t.Errorf("101 waits one after the other sent %d queries, want 2", n)
	}
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := s.Gone(within(t, time.Minute), m); err != nil {
		t.Errorf("Gone of a member that has left returned %v", err)
	}
}

// Whatever happens to the request of a Join and to its answer, there is one member.
func TestAmbiguousJoin(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		harm func(p *proxy.Proxy)
	}{
		{"connection reset before the request", func(p *proxy.Proxy) { p.CloseAfter(proxy.ToServer, 0) }},
		{"connection reset in the request", func(p *proxy.Proxy) { p.CloseAfter(proxy.ToServer, 100) }},
		{"connection reset before the answer", func(p *proxy.Proxy) { p.CloseAfter(proxy.ToClient, 0) }},
		{"connection reset in the answer", func(p *proxy.Proxy) { p.CloseAfter(proxy.ToClient, 40) }},
		{"answer lost in silence", func(p *proxy.Proxy) {
			p.LoseAnswers(func(b []byte) bool { return bytes.HasPrefix(b, []byte("PUT /v1/txn")) })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr, name := server(t), coordtest.Name(t)
			p := coordtest.NewProxy(t, addr)
			s := session(t, p.Addr(), nil)
			other := join(t, session(t, addr, nil), name, "same")
			tt.harm(p)
			m := join(t, s, name, "same")
			line, err := s.Line(t.Context(), name)
			if err != nil || len(line.Members) != 2 || line.Members[0] != other || line.Members[1] != m {
				t.Errorf("the line is %+v (error: %v), want %+v and %+v", line.Members, err, other, m)
			}
			if err := s.Leave(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if keys := members(t, addr, name); len(keys) != 1 {
				t.Errorf("after leaving there are %q", keys)
			}
		})
	}
}

// A request that was given up, and whose connection has broken, may arrive late; the session must remove
// what it makes.
func TestLateJoinIsRemoved(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	p := coordtest.NewProxy(t, addr)
	s := session(t, p.Addr(), &consul.Options{TTL: 10 * time.Second})
	p.Block(proxy.ToServer)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("given up"))
	defer cancel()
	if _, err := s.Join(ctx, name, "", ""); err == nil || !errors.Is(err, context.Cause(ctx)) {
		t.Fatalf("Join returned %v, want the cause of its context", err)
	}
	p.Reset()
	p.Heal()
	kv := admin(t, addr).KV()
	for range 3 {
		id := consul.SessionID(s)
		if ok, _, err := kv.Acquire(&api.KVPair{Key: name + "/" + id, Session: id}, nil); err != nil || !ok {
			t.Fatalf("the late request was not done: %v, %v", ok, err)
		}
		other := session(t, addr, nil)
		m := backend.Member{Line: name, Key: id, Position: position(t, addr, name+"/"+id)}
		if m.Position != 0 {
			if err := other.Gone(within(t, time.Minute), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s.Err() != nil {
		t.Errorf("the session has ended: %v", s.Err())
	}
	// The next member has another key, and is left alone.
	m := join(t, s, name, "")
	if p, err := s.Ahead(t.Context(), m); err != nil || !p.First {
		t.Errorf("the next member stands at %+v, %v", p, err)
	}
}

// position returns the CreateIndex of the key, or 0 if there is none.
func position(t testing.TB, addr, key string) uint64 {
	t.Helper()
	p, _, err := admin(t, addr).KV().Get(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p == nil {
		return 0
	}
	return p.CreateIndex
}

// A session that hears nothing must end well before Consul lets the next member lead, and
// must stay ended when all answers arrive at once.
func TestLateRenewalsReviveNothing(t *testing.T) {
	t.Parallel()
	const ttl = 2 * ttl // for a busy machine
	addr, name := server(t), coordtest.Name(t)
	p := coordtest.NewProxy(t, addr)
	s := session(t, p.Addr(), &consul.Options{TTL: ttl})
	m := join(t, s, name, "")
	observer := session(t, addr, nil)
	// Wait for the deadline of a renewal: the first one is that of the creation.
	for first := s.Deadline(); s.Deadline().Sub(first) < ttl/4; {
		select {
		case <-time.After(ttl / 50):
		case <-s.Done():
			t.Fatal(s.Err())
		}
	}
	p.Block(proxy.ToClient)
	if err := ended(t, s, ttl+ttl/5); !errors.Is(err, backend.ErrSessionEnded) {
		t.Errorf("the session ended with %v", err)
	}
	over := time.Now()
	// Renewals went on to arrive for a while, and the destruction does not: it is on
	// another connection, and its answer is what is held back. Either way the key
	// goes after the end here.
	if err := observer.Gone(within(t, time.Minute), m); err != nil {
		t.Fatal(err)
	}
	if time.Since(over) < 0 || time.Until(s.Deadline()) > 0 {
		t.Errorf("the key has gone, and the deadline is %v ahead", time.Until(s.Deadline()))
	}
	p.Heal()
	if _, err := s.Ahead(t.Context(), m); !errors.Is(err, backend.ErrSessionEnded) {
		t.Errorf("Ahead under the session returned %v", err)
	}
}

func TestSessionDestroyedByOperator(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	// A renewal would notice it only after 20 s.
	b := open(t, addr, &consul.Options{TTL: time.Minute})
	s := sessionOf(t, b)
	m := join(t, s, name, "")
	gone := make(chan error, 1)
	go func() { gone <- s.Gone(t.Context(), m) }()
	if _, err := admin(t, addr).Session().Destroy(consul.SessionID(s), nil); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		t.Errorf("Gone of the own member returned %v", err)
	}
	if _, err := s.Ahead(t.Context(), m); !errors.Is(err, backend.ErrSessionEnded) {
		t.Errorf("Ahead returned %v, want ErrSessionEnded: the session is gone, not the member alone", err)
	}
	if err := ended(t, s, time.Second); !errors.Is(err, backend.ErrSessionEnded) {
		t.Errorf("the session ended with %v", err)
	}
	if next := sessionOf(t, b); next == s {
		t.Error("Session returned the session that has ended")
	}
}

func TestMemberDeletedByOperator(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	s := session(t, addr, nil)
	m := join(t, s, name, "")
	if _, err := admin(t, addr).KV().Delete(name+"/"+m.Key, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ahead(t.Context(), m); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Ahead returned %v, want ErrNotMember", err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("the session has ended: %v", err)
	}
}

// If an operator writes to a member's key, its ModifyIndex changes, on which transactions
// depend.
func TestKeyChangedByOperator(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	s, other := session(t, addr, nil), session(t, addr, nil)
	m := join(t, s, name, "was")
	gone := make(chan error, 1)
	go func() { gone <- other.Gone(t.Context(), m) }()
	if _, err := admin(t, addr).KV().Put(&api.KVPair{Key: name + "/" + m.Key, Value: []byte("is")}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), name+"-r", nil, &backend.If{Member: m}); err != nil {
		t.Errorf("Put under the member returned %v", err)
	}
	if p, err := s.Ahead(t.Context(), m); err != nil || !p.First {
		t.Errorf("the member stands at %+v, %v", p, err)
	}
	select {
	case err := <-gone:
		t.Errorf("Gone returned %v, and the member stands", err)
	default:
	}
	if err := s.Leave(t.Context(), m); err != nil {
		t.Error(err)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
}

func TestNodeDeregistered(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	const ttl = 9 * time.Second
	b := open(t, addr, &consul.Options{TTL: ttl, Node: name})
	s := sessionOf(t, b)
	join(t, s, name, "")
	if _, err := admin(t, addr).Catalog().Deregister(&api.CatalogDeregistration{Node: name}, nil); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, s, ttl/2); !errors.Is(err, backend.ErrSessionEnded) {
		t.Errorf("the session ended with %v", err)
	}
	// The node is registered again.
	m := join(t, sessionOf(t, b), name, "")
	if p, err := sessionOf(t, b).Ahead(t.Context(), m); err != nil || !p.First {
		t.Errorf("the member stands at %+v, %v", p, err)
	}
}

// Renewals have a connection of their own. Neither many blocking queries nor the server's
// limit of connections take it away.
func TestQueriesDoNotStarveRenewals(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Config: []string{"limits{http_max_conns_per_client=20}"}})
	s := session(t, c.Addrs()[0], nil)
	name := coordtest.Name(t)
	errs := make(chan error)
	const n = 60
	for range n {
		m := join(t, s, name, "")
		ctx, cancel := context.WithTimeoutCause(t.Context(), ttl/4, errEnough)
		defer cancel()
		go func() { errs <- s.Gone(ctx, m) }()
	}
	for range n {
		if err := <-errs; !errors.Is(err, errEnough) {
			t.Errorf("Gone returned %v, want the cause of its context", err)
		}
	}
	renewed(t, s)
}

var errEnough = errors.New("enough")

func TestCloseIsBoundedWhileCutOff(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	p := coordtest.NewProxy(t, addr)
	b := open(t, p.Addr(), &consul.Options{TTL: time.Minute})
	join(t, sessionOf(t, b), name, "")
	p.Cut()
	watch := calm.Start(t)
	if err := b.Close(); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Close returned %v, want ErrUnavailable: the member stands", err)
	}
	watch.Within(4*time.Second, "Close")
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Session after Close returned %v", err)
	}
}

// When a session is closed, Consul may not have been told yet that the session before it
// has ended.
func TestCloseAwaitsEarlierSession(t *testing.T) {
	t.Parallel()
	// begin opens a backend with a second session, whose first one has ended. The request
	// that tells Consul of the end of the first is held until release is closed. last is
	// closed once Consul knows of the end of the second.
	begin := func(t *testing.T, name string, ttl time.Duration) (b *consul.Backend, first, second backend.Session, release, last chan struct{}) {
		b = open(t, server(t), &consul.Options{TTL: ttl})
		release, last = make(chan struct{}), make(chan struct{})
		told := sync.OnceFunc(func() { close(last) })
		consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
			id, destroys := strings.CutPrefix(req.URL.Path, "/v1/session/destroy/")
			if !destroys {
				return next.RoundTrip(req)
			}
			if id != consul.SessionID(first) {
				defer told()
				return next.RoundTrip(req)
			}
			select {
			case <-release:
				return next.RoundTrip(req)
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		})
		first = sessionOf(t, b)
		join(t, first, name, "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.Close(ctx); !errors.Is(err, backend.ErrUnavailable) {
			t.Fatalf("Close of a session that Consul was not told of returned %v", err)
		}
		return b, first, sessionOf(t, b), release, last
	}
	t.Run("told meanwhile", func(t *testing.T) {
		t.Parallel()
		name := coordtest.Name(t)
		b, _, _, release, last := begin(t, name, time.Minute)
		closed, watch := make(chan error, 1), calm.Start(t)
		go func() { closed <- b.Close() }()
		<-last
		close(release)
		if err := <-closed; err != nil {
			if !watch.NotJudged(2*time.Second, "Close returned %v", err) {
				t.Errorf("Close returned %v", err)
			}
			return
		}
		if left := members(t, server(t), name); len(left) > 0 {
			t.Errorf("after Close %q stand", left)
		}
	})
	t.Run("not told", func(t *testing.T) {
		t.Parallel()
		b, first, second, _, _ := begin(t, coordtest.Name(t), time.Minute)
		watch, err := calm.Start(t), b.Close()
		if !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), consul.SessionID(first)) ||
			strings.Contains(err.Error(), consul.SessionID(second)) && !watch.NotJudged(2*time.Second, "Close returned %v", err) {
			t.Errorf("Close returned %v, want ErrUnavailable for session %s alone", err, consul.SessionID(first))
		}
	})
	t.Run("ended by itself", func(t *testing.T) {
		t.Parallel()
		b, first, _, _, _ := begin(t, coordtest.Name(t), 2*ttl) // for a busy machine
		if err := first.Close(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
			t.Fatalf("Close of a session that Consul was not told of returned %v", err)
		}
		watch := calm.Start(t)
		if err := b.Close(); err != nil && !watch.NotJudged(2*time.Second, "Close returned %v", err) {
			t.Errorf("Close returned %v", err)
		}
	})
}

// Writes to other keys wake the queries for a key that does not exist. Watch must not answer
// each with the next query.
func TestWatchOfNothingWhileOthersWrite(t *testing.T) {
	t.Parallel()
	const enough, watches = 200 * time.Millisecond, 20
	c := coordtest.NewConsul(t, nil)
	b, writer := open(t, c.Addrs()[0], &consul.Options{TTL: time.Minute}), sessionOf(t, open(t, c.Addrs()[0], nil))
	requests := consul.CountRequests(b)
	s := sessionOf(t, b)
	written := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var writing, watching sync.WaitGroup
	for i := range 4 { // more than one while a query is on its way
		name := coordtest.Name(t)
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if _, err := writer.Put(t.Context(), name, nil, nil); err != nil {
					t.Error(err)
					return
				}
				if i == 0 && n == 0 {
					close(written)
				}
			}
		})
	}
	<-written
	before, watch := requests.Load(), calm.Start(t)
	for range watches {
		name := coordtest.Name(t)
		watching.Go(func() {
			// The first pause is at least a quarter of a second.
			ctx, cancel := context.WithTimeoutCause(t.Context(), enough, errEnough)
			defer cancel()
			if _, err := s.Watch(ctx, name, backend.Absent); !errors.Is(err, errEnough) {
				t.Errorf("Watch returned %v", err)
			}
		})
	}
	watching.Wait()
	n := requests.Load() - before
	cancel()
	writing.Wait()
	if n > 2*watches && !watch.NotJudged(enough, "%d requests", n) { // a read and a query
		t.Errorf("%d watches of records that do not exist sent %d requests in %v, while others wrote", watches, n, enough)
	}
}
