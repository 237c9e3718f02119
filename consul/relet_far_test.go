package consul_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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

// creates counts the requests that create sessions of Consul.
type creates struct{ atomic.Int64 }

func (n *creates) pass(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	if req.URL.Path == "/v1/session/create" {
		n.Add(1)
	}
	return next.RoundTrip(req)
}

// Many members on a long way must be moved before the session's time is over, once.
func TestReletOverLongWay(t *testing.T) {
	t.Parallel()
	const members, oneWay, ttl = 200, 60 * time.Millisecond, 3 * time.Second
	addr, name := server(t), coordtest.Name(t)
	p := coordtest.NewProxy(t, addr)
	var created creates
	b := ledBy(t, p.Addr(), ttl, "first", created.pass)
	watch, s := calm.Start(t), sessionOf(t, b)
	var joining sync.WaitGroup
	for range 10 {
		joining.Go(func() {
			for range members / 10 {
				if _, err := s.Join(t.Context(), name, "", ""); err != nil {
					if !watch.NotJudged(ttl/3, "Join: %v", err) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	joining.Wait()
	p.Delay(proxy.ToServer, oneWay)
	p.Delay(proxy.ToClient, oneWay)
	old := consul.SessionID(s)
	created.Store(0)
	begun := time.Now()
	b.leader.Store("second")
	operator := admin(t, addr)
	for moved := 0; moved < members; {
		if err := s.Err(); err != nil {
			if !watch.NotJudged(ttl/3, "%d of %d members are moved: %v", moved, members, err) {
				t.Fatalf("%d of %d members are moved: %v", moved, members, err)
			}
			return
		}
		pairs, _, err := operator.KV().List(name+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		moved = 0
		for _, p := range pairs {
			if p.Session == consul.SessionID(s) && p.Session != old {
				moved++
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	took := time.Now()
	t.Logf("%d members were moved within %v of the change", members, took.Sub(begun).Round(time.Millisecond))
	for s.Deadline().Before(took.Add(ttl)) { // until a renewal was sent after the move
		select {
		case <-time.After(ttl / 50):
		case <-s.Done():
			if !watch.NotJudged(ttl/3, "%v", s.Err()) {
				t.Fatal(s.Err())
			}
			return
		}
	}
	if n := created.Load(); n != 1 && !watch.NotJudged(ttl/3, "%d sessions", n) {
		t.Errorf("one change of leader created %d sessions of Consul, want 1", n)
	}
}

// Members with large values are moved in requests that the agent takes, whatever it takes.
func TestReletOfLargeMembers(t *testing.T) {
	t.Parallel()
	for what, limits := range map[string][]string{
		"by default":     nil,
		"with less room": {"limits{txn_max_req_len=40000,kv_max_value_size=40000}"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			addr, name := server(t), coordtest.Name(t)+strings.Repeat("x", 100)
			if limits != nil {
				addr = coordtest.NewConsul(t, &coordtest.ConsulOptions{Config: limits}).Addrs()[0]
			}
			o := &consul.Options{TTL: time.Minute, Prefix: strings.Repeat("x", backend.MaxName)}
			b := ledWith(t, addr, o, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				return next.RoundTrip(req)
			})
			s := sessionOf(t, b)
			var line []backend.Member
			for i := range 60 {
				line = append(line, join(t, s, name, strings.Repeat(fmt.Sprint(i%10), backend.MaxValue)))
			}
			b.leader.Store("second")
			if err := consul.Renew(s); err != nil {
				t.Fatal(err)
			}
			pairs, _, err := admin(t, addr).KV().List(o.Prefix+"/"+name+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(pairs) != len(line) {
				t.Fatalf("%d of %d members stand", len(pairs), len(line))
			}
			for _, p := range pairs {
				i := slices.IndexFunc(line, func(m backend.Member) bool { return m.Position == p.CreateIndex })
				if i < 0 || p.Session != consul.SessionID(s) || string(p.Value) != line[i].Value {
					t.Errorf("%s is locked by %s with a value of %d bytes; want %s, and the value as it was", p.Key, p.Session, len(p.Value), consul.SessionID(s))
				}
			}
		})
	}
}

// A move that was interrupted goes on with the session that was created for it.
func TestBrokenMoveGoesOn(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	var created creates
	var refuse atomic.Int64 // how many more writes are denied
	b := ledBy(t, addr, time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) == "PUT /v1/txn" && refuse.Add(-1) >= 0 {
			body := io.NopCloser(strings.NewReader("Permission denied"))
			return &http.Response{StatusCode: http.StatusForbidden, Header: make(http.Header), Body: body, Request: req}, nil
		}
		return created.pass(req, next)
	})
	s := sessionOf(t, b)
	m := join(t, s, name, "")
	created.Store(0)
	refuse.Store(2) // what is denied once may pass
	b.leader.Store("second")
	if err := consul.Renew(s); !errors.Is(err, backend.ErrDenied) {
		t.Fatalf("the renewal whose move was refused returned %v, want ErrDenied", err)
	}
	before := s.Deadline()
	if err := consul.Renew(s); err != nil {
		t.Fatal(err)
	}
	if n := created.Load(); n != 1 {
		t.Errorf("one change of leader created %d sessions of Consul, want 1", n)
	}
	if !s.Deadline().After(before) {
		t.Error("the deadline has not moved, although all members have")
	}
	if p, _, err := admin(t, addr).KV().Get(name+"/"+m.Key, nil); err != nil || p == nil || p.Session != consul.SessionID(s) {
		t.Errorf("the member's key is %+v, %v; want it locked by %s", p, err, consul.SessionID(s))
	}
}

// Former sessions of Consul do not pile up, neither at Consul nor here.
func TestOldSessionsArePruned(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	var destroyed atomic.Int64
	b := ledBy(t, addr, time.Minute, "0", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasPrefix(req.URL.Path, "/v1/session/destroy/") {
			destroyed.Add(1)
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	m := join(t, s, name, "")
	ids := []string{consul.SessionID(s)}
	for n := range 5 {
		b.leader.Store(fmt.Sprint(n + 1))
		if err := consul.Renew(s); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, consul.SessionID(s))
	}
	operator := admin(t, addr)
	for i, id := range ids {
		entry, _, err := operator.Session().Info(id, nil)
		if want := i >= len(ids)-2; err != nil || (entry != nil) != want {
			t.Errorf("Consul has %+v (error: %v) as number %d of %d sessions, want that: %v", entry, err, i+1, len(ids), want)
		}
	}
	if p, err := s.Ahead(t.Context(), m); err != nil || !p.First {
		t.Errorf("the member stands at %+v, %v", p, err)
	}
	destroyed.Store(0)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := destroyed.Load(); n != 2 {
		t.Errorf("Close sent %d requests to end sessions of Consul, want 2", n)
	}
}

// What Consul says of a former session of Consul says nothing about the present one.
func TestEndOfOldSessionEndsNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"PUT /v1/txn", "renewal"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			addr, name := server(t), coordtest.Name(t)
			var hold atomic.Bool
			held, release := make(chan struct{}), make(chan struct{})
			b := ledBy(t, addr, time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				if kindOf(req) == kind && hold.CompareAndSwap(true, false) {
					close(held)
					<-release
				}
				return next.RoundTrip(req)
			})
			s := sessionOf(t, b)
			m := join(t, s, name, "")
			old := consul.SessionID(s)
			hold.Store(true)
			done := make(chan error, 1)
			go func() {
				if kind == "renewal" {
					done <- consul.Renew(s)
					return
				}
				_, err := s.Join(t.Context(), name, "", "")
				done <- err
			}()
			<-held
			b.leader.Store("second")
			if err := consul.Renew(s); err != nil {
				t.Fatal(err)
			}
			if _, err := admin(t, addr).Session().Destroy(old, nil); err != nil {
				t.Fatal(err)
			}
			close(release)
			if err := <-done; err != nil && kind != "renewal" {
				t.Errorf("Join returned %v", err)
			}
			if err := s.Err(); err != nil {
				t.Fatalf("the session has ended: %v", err)
			}
			if p, err := s.Ahead(t.Context(), m); err != nil || !p.First {
				t.Errorf("the member stands at %+v, %v", p, err)
			}
		})
	}
}

// A write under a member, and Leave, are one request also after the key of the member has
// changed. If they read first, a resignation would take three times as long.
func TestOneRequestAfterRelet(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []string
	addr, name := server(t), coordtest.Name(t)
	b := ledBy(t, addr, time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kind := kindOf(req); kind != "renewal" {
			mu.Lock()
			sent = append(sent, kind)
			mu.Unlock()
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	one := func(what string, f func() error) {
		t.Helper()
		mu.Lock()
		sent = nil
		mu.Unlock()
		if err := f(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(sent) != 1 {
			t.Errorf("%s sent %q, want one request", what, sent)
		}
	}
	m := join(t, s, name, "")
	put := func() error {
		_, err := s.Put(t.Context(), name+"-record", []byte("x"), &backend.If{Member: m})
		return err
	}
	one("Put", put)
	for _, leader := range []string{"second", "third"} {
		b.leader.Store(leader)
		if err := consul.Renew(s); err != nil {
			t.Fatal(err)
		}
		one("Put after another leader", put)
	}
	if _, err := admin(t, addr).KV().Put(&api.KVPair{Key: name + "/" + m.Key, Value: []byte("operator")}, nil); err != nil {
		t.Fatal(err)
	}
	if err := put(); err != nil { // finds out
		t.Fatal(err)
	}
	one("Put after an operator's change", put)
	one("Leave", func() error { return s.Leave(t.Context(), m) })
	if left := members(t, addr, name); len(left) > 0 {
		t.Errorf("after Leave %q stand", left)
	}
}
