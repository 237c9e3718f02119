package consul_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// TestRelet makes Consul change its leader. Then it does what a former leader that stood
// still may do when it leads again: it ends a session that was alive.
func TestRelet(t *testing.T) {
	t.Parallel()
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Nodes: 3, Config: []string{patient}})
	first, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(c.Servers(), first)
	addr := c.Addrs()[(i+1)%3]
	operator := admin(t, addr)
	name := coordtest.Name(t)
	b := open(t, addr, &consul.Options{TTL: 20 * time.Second})
	term, err := elect.New(b, name, nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := sessionOf(t, b)
	members := []backend.Member{term.Member()}
	for n := range 50 { // more than one request moves
		members = append(members, join(t, s, fmt.Sprintf("%s-%d", name, n), fmt.Sprint(n)))
	}
	pinned, left := members[1], members[2]
	if err := s.Pin(t.Context(), pinned, backend.Header{Fence: 7}, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Leave(t.Context(), left); err != nil {
		t.Fatal(err)
	}

	for _, to := range []int{(i + 2) % 3, i} {
		old := consul.SessionID(s)
		joined := rig.Joins(t, s, fmt.Sprintf("%s-meanwhile-%d", name, to))
		transfer(t, c, to)
		_ = consul.Renew(s) // or a later one
		for _, m := range members {
			if m != pinned && m != left {
				lockedBy(t, operator, s, m, func(id string) bool { return id != old && id == consul.SessionID(s) })
			}
		}
		members = append(members, joined()...)
		if _, err := operator.Session().Destroy(old, nil); err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			l, err := s.Line(t.Context(), m.Line)
			if err != nil {
				t.Fatal(err)
			}
			want := []backend.Member{m}
			want[0].Pinned = m == pinned
			if m == left {
				want = nil
			}
			if !slices.Equal(l.Members, want) {
				t.Errorf("the line is %+v, want %+v", l.Members, want)
			}
		}
	}
	renewed(t, s) // and all else goes on, too
	if err := term.Check(); err != nil {
		t.Errorf("the term has ended: %v", err)
	}
	if _, err := term.Put(t.Context(), name+"-record", []byte("x"), backend.Any); err != nil {
		t.Errorf("a guarded write: %v", err)
	}
	if err := s.Leave(t.Context(), members[3]); err != nil {
		t.Errorf("Leave: %v", err)
	}
	join(t, s, name+"-late", "x")
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := session(t, addr, nil)
	for _, m := range members {
		l, err := other.Line(t.Context(), m.Line)
		if err != nil || len(l.Members) > 0 && m != pinned {
			t.Errorf("%+v stands after Close, %v", l.Members, err)
		}
	}
}

// TestStaleLeader pauses Consul's leader for longer than it keeps sessions, and makes it
// lead again. It tries to end the sessions that it has seen run out.
func TestStaleLeader(t *testing.T) {
	t.Parallel()
	const outlives = 8 * time.Second // a TTL that outlives a change of Consul's leader, if the servers are patient
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Nodes: 3, Config: []string{patient, "autopilot{cleanup_dead_servers=false}"}})
	stale, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(c.Servers(), stale)
	addr := c.Addrs()[(i+1)%3]
	operator := admin(t, addr)
	watch, s := calm.Start(t), session(t, addr, &consul.Options{TTL: outlives})
	m := join(t, s, coordtest.Name(t), "x")
	first := consul.SessionID(s)
	if err := stale.Pause(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(outlives * 5 / 2)
	if err := stale.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := stale.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	transfer(t, c, i)
	// It tries for the first time after ten seconds.
	ctx := within(t, time.Minute)
	for known := true; known; time.Sleep(50 * time.Millisecond) {
		entry, _, err := operator.Session().Info(first, (&api.QueryOptions{}).WithContext(ctx))
		if err != nil {
			t.Fatalf("the session that has run out at the stale leader is still there: %v", err)
		}
		known = entry != nil
	}
	l, err := s.Line(t.Context(), m.Line)
	if ended := s.Err(); ended != nil && watch.NotJudged(outlives/3, "the session has ended: %v", ended) {
		return
	}
	if err != nil || !slices.Equal(l.Members, []backend.Member{m}) {
		t.Errorf("the line is %+v, %v; want %+v", l.Members, err, m)
	}
}

// led is a backend that is told that Consul has the leader that the test names.
type led struct {
	*consul.Backend
	leader atomic.Value // string
}

// ledBy opens a backend that is told that the given server leads. Each other request goes
// through f.
func ledBy(t *testing.T, addr string, ttl time.Duration, one string, f func(req *http.Request, next http.RoundTripper) (*http.Response, error)) *led {
	t.Helper()
	return ledWith(t, addr, &consul.Options{TTL: ttl}, one, f)
}

func ledWith(t *testing.T, addr string, o *consul.Options, one string, f func(req *http.Request, next http.RoundTripper) (*http.Response, error)) *led {
	t.Helper()
	l := &led{Backend: open(t, addr, o)}
	l.leader.Store(one)
	consul.Tap(l.Backend, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) != "leader" {
			return f(req, next)
		}
		body := io.NopCloser(strings.NewReader(strconv.Quote(l.leader.Load().(string))))
		return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: body, Request: req}, nil
	})
	return l
}

// A request to join may be on its way while Consul changes its leader more than once.
// Then it names a session of Consul that nobody renews any more.
func TestJoinWhileLeadersChange(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	var held atomic.Bool
	joining, release := make(chan struct{}), make(chan struct{})
	// The TTL is so long that only the test sends renewals.
	b := ledBy(t, addr, time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) == "PUT /v1/txn" && held.CompareAndSwap(false, true) {
			close(joining)
			<-release
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	ids := []string{consul.SessionID(s)}
	var m backend.Member
	joined := make(chan error, 1)
	go func() {
		j, err := s.Join(t.Context(), name, "", "")
		m = j.Member
		joined <- err
	}()
	<-joining
	for _, leader := range []string{"second", "third"} {
		b.leader.Store(leader)
		if err := consul.Renew(s); err != nil {
			t.Fatal(err)
		}
		id := consul.SessionID(s)
		if slices.Contains(ids, id) {
			t.Fatalf("the session of Consul is still %s", id)
		}
		ids = append(ids, id)
	}
	close(release)
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	operator := admin(t, addr)
	p, _, err := operator.KV().Get(m.Line+"/"+m.Key, nil)
	if err != nil || p == nil || p.Session != ids[2] {
		t.Errorf("the member's key is %+v, %v; want it locked by the last of the sessions %q", p, err, ids)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if entry, _, err := operator.Session().Info(id, nil); err != nil || entry != nil {
			t.Errorf("after Close Consul has %+v, %v; want none of the sessions %q", entry, err, ids)
		}
	}
}

// A session forgets ghosts once Consul has ended the session that could create them. If they become too many, it takes another session of
// Consul for that, and its members keep their places.
func TestGhostsForgotten(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	var lose atomic.Bool
	b := ledBy(t, addr, time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && kindOf(req) == "PUT /v1/txn" && lose.Swap(false) {
			resp.Body.Close()
			return nil, errors.New("the answer is lost")
		}
		return resp, err
	})
	s := sessionOf(t, b)
	stays := join(t, s, name, "")
	before, first := consul.Remembered(s), consul.SessionID(s)
	renew := func() {
		t.Helper()
		if err := consul.Renew(s); err != nil {
			t.Fatal(err)
		}
	}
	lose.Store(true)
	doubtful := join(t, s, name, "")
	if err := s.Leave(t.Context(), doubtful); err != nil {
		t.Fatal(err)
	}
	if n := consul.Remembered(s); n != before+1 {
		t.Fatalf("the session remembers %d things after a lost answer, and %d before", n, before)
	}
	renew()
	if id := consul.SessionID(s); id != first {
		t.Errorf("for one ghost it takes another session of Consul")
	}
	for i := range consul.MaxGhosts - 1 {
		consul.Abandon(s, fmt.Sprintf("%s/ghost-%d", name, i))
	}
	renew()
	second := consul.SessionID(s)
	if n := consul.Remembered(s); second == first || n < before+consul.MaxGhosts {
		t.Errorf("it has the session %s of Consul, as before %s, and remembers %d things while that may still create them", second, first, n)
	}
	renew()
	if n := consul.Remembered(s); n > before {
		t.Errorf("the session remembers %d things, and %d before all the answers that were lost", n, before)
	}
	third := consul.SessionID(s)
	renew()
	if id := consul.SessionID(s); id != third {
		t.Errorf("it goes on to take other sessions of Consul")
	}
	if p, err := s.Ahead(t.Context(), stays); err != nil || !p.First {
		t.Errorf("its member stands at %+v, %v", p, err)
	}
	if keys := members(t, addr, name); len(keys) != 1 {
		t.Errorf("%q stand, want its member alone", keys)
	}
}

// A leader leaves a long line together with others, and no answer comes while Consul changes its leader twice. What is sent then names no
// session of Consul that has ended, so the session does not believe that its own has.
func TestLeaveTogetherWhileLeadersChange(t *testing.T) {
	t.Parallel()
	var s backend.Session
	var l *led
	var leaving atomic.Bool
	l = ledBy(t, server(t), time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) != "PUT /v1/txn" || !leaving.Swap(false) {
			return next.RoundTrip(req)
		}
		for _, leader := range []string{"second", "third"} {
			l.leader.Store(leader)
			if err := consul.Renew(s); err != nil {
				t.Error(err)
			}
		}
		return nil, errors.New("the request is lost")
	})
	s = sessionOf(t, l.Backend)
	name := coordtest.Name(t)
	var ms []backend.Member
	for range 8 {
		ms = append(ms, join(t, s, name, ""))
	}
	const first = 5 // of those that stay; it has seen a long line, so it leaves a mark
	if _, err := s.Ahead(t.Context(), ms[first]); err != nil {
		t.Fatal(err)
	}
	for _, m := range ms[:first] {
		if err := s.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := s.Ahead(t.Context(), ms[first]); err != nil || !p.First {
		t.Fatalf("the first member stands at %+v, %v", p, err)
	}
	leaving.Store(true)
	if gone := consul.LeaveTogether(t.Context(), s, ms[first:]...); len(gone) != len(ms)-first {
		t.Errorf("%v of them have gone together", gone)
	}
	if err := s.Err(); err != nil {
		t.Fatalf("the session has ended because of %v", err)
	}
	if left := members(t, server(t), name); len(left) > 0 {
		t.Errorf("%q stand", left)
	}
}

// If two renewals are on their way at a change of leader, they create one fresh session.
func TestRenewalsMeetOneChangeOfLeader(t *testing.T) {
	t.Parallel()
	const n = 2
	sent, release := make(chan struct{}, n), make(chan struct{})
	var held atomic.Bool
	b := ledBy(t, server(t), time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) == "renewal" && held.Load() {
			sent <- struct{}{}
			<-release
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	first := consul.SessionID(s)
	held.Store(true)
	renewed := make(chan error)
	for range n {
		go func() { renewed <- consul.Renew(s) }()
		<-sent
	}
	b.leader.Store("second")
	var ids []string
	for range n {
		release <- struct{}{}
		if err := <-renewed; err != nil {
			t.Error(err)
		}
		ids = append(ids, consul.SessionID(s))
	}
	if ids[0] == first || ids[1] != ids[0] {
		t.Errorf("the session of Consul was %s, and after each of the two renewals one of %q; want one other, once", first, ids)
	}
}

// A lost answer while a fresh session is created must not cost the session.
func TestAnswerLostAtChangeOfLeader(t *testing.T) {
	t.Parallel()
	var lose atomic.Bool
	b := ledBy(t, server(t), 9*time.Second, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.URL.Path == "/v1/session/create" && lose.CompareAndSwap(true, false) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	first := consul.SessionID(s)
	lose.Store(true)
	b.leader.Store("second")
	if err := consul.Renew(s); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("the renewal whose request was not answered returned %v, want ErrUnavailable", err)
	}
	for consul.SessionID(s) == first {
		if err := s.Err(); err != nil {
			t.Fatalf("the session has ended, as one request was not answered: %v", err)
		}
		_ = consul.Renew(s) // another one may be about to do the same
	}
}

// transfer makes Consul's leader hand over to the server with the index.
func transfer(t *testing.T, c *coordtest.Consul, to int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		now, err := c.LeaderAfter(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if now == c.Servers()[to] {
			return
		}
		conf, err := admin(t, now.Addr()).Operator().RaftGetConfiguration((&api.QueryOptions{}).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(conf.Servers, func(s *api.RaftServer) bool { return s.Node == c.Nodes()[to] })
		resp, err := http.Post("http://"+now.Addr()+"/v1/operator/raft/transfer-leader?id="+conf.Servers[at].ID, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		time.Sleep(100 * time.Millisecond) // it is refused while the server is behind
	}
	t.Fatal("the server does not become the leader")
}

// lockedBy waits until the member is locked by a session of Consul for which ok is true.
func lockedBy(t *testing.T, operator *api.Client, s backend.Session, m backend.Member, ok func(id string) bool) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for {
		p, _, err := operator.KV().Get(m.Line+"/"+m.Key, nil)
		if err == nil && (p == nil || p.CreateIndex != m.Position) {
			t.Fatalf("%+v does not stand", m)
		}
		if err == nil && ok(p.Session) {
			return
		}
		if gone := s.Err(); gone != nil || time.Now().After(end) {
			t.Fatalf("%+v is not moved: %v, %v", m, gone, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A member that has been moved to another session of Consul costs no more than before: one
// request writes under it, and one removes it.
func TestRequestsAfterMove(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// meddle answers the request, a transaction that writes, by means of next.
		meddle func(b *led, n int64, next func() (*http.Response, error)) (*http.Response, error)
	}{
		{"moved", func(_ *led, _ int64, next func() (*http.Response, error)) (*http.Response, error) { return next() }},
		{"the answer to the move is lost", func(_ *led, n int64, next func() (*http.Response, error)) (*http.Response, error) {
			resp, err := next()
			if n == 2 && err == nil { // the first is Join
				resp.Body.Close()
				return nil, errors.New("lost")
			}
			return resp, err
		}},
		{"moved while it joins", func(b *led, n int64, next func() (*http.Response, error)) (*http.Response, error) {
			resp, err := next()
			if n == 1 {
				b.leader.Store("second")
				err = errors.Join(err, consul.Renew(sessionOf(t, b)))
			}
			return resp, err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var b *led
			var writes, all atomic.Int64
			b = ledBy(t, server(t), time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				if kindOf(req) != "renewal" {
					all.Add(1)
				}
				if kindOf(req) != "PUT /v1/txn" {
					return next.RoundTrip(req)
				}
				return test.meddle(b, writes.Add(1), func() (*http.Response, error) { return next.RoundTrip(req) })
			})
			s := sessionOf(t, b)
			old := consul.SessionID(s)
			m := join(t, s, coordtest.Name(t), "")
			b.leader.Store("second")
			if err := consul.Renew(s); err != nil {
				t.Fatal(err)
			}
			if consul.SessionID(s) == old {
				t.Fatal("the session of Consul is the old one: nothing is tested")
			}
			before := all.Load()
			if _, err := s.Put(t.Context(), m.Line+"-record", nil, &backend.If{Member: m}); err != nil {
				t.Fatal(err)
			}
			if err := s.Leave(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if n := all.Load() - before; n != 2 {
				t.Errorf("a guarded write and Leave took %d requests, want 2", n)
			}
			if l, err := s.Line(t.Context(), m.Line); err != nil || len(l.Members) != 0 {
				t.Errorf("the line is %+v, %v; want nobody", l, err)
			}
		})
	}
}

// A session that is destroyed while members are being moved to it leaves none of them standing.
func TestDestroyedWhileMembersMove(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	var hold atomic.Bool
	moving, release := make(chan struct{}), make(chan struct{})
	b := ledBy(t, addr, time.Minute, "first", func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) == "PUT /v1/txn" && hold.CompareAndSwap(true, false) {
			close(moving)
			<-release
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	join(t, s, name, "")
	hold.Store(true)
	b.leader.Store("second")
	renewed := make(chan error, 1)
	go func() { renewed <- consul.Renew(s) }()
	<-moving
	if _, err := admin(t, addr).Session().Destroy(consul.SessionID(s), nil); err != nil {
		t.Fatal(err)
	}
	close(release)
	<-renewed
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Err() == nil {
		t.Fatal("the session lives")
	}
	if left := members(t, addr, name); len(left) > 0 {
		t.Errorf("after Close %q stand", left)
	}
}
