package consul_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// If the agent has no connection left for waiters' queries, they must not ask more often: they would take
// connections from others. They are looked for together.
func TestCrowdedAgent(t *testing.T) {
	t.Parallel()
	const ttl, waiters, connections = 6 * time.Second, 40, 20
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Config: []string{"limits{http_max_conns_per_client=20}"}})
	b := open(t, c.Addrs()[0], &consul.Options{TTL: ttl})
	var mu sync.Mutex
	asked := make(map[string]int)
	consul.OnRequest(b, func(req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[kindOf(req)]++
	})
	watch, s := calm.Start(t), sessionOf(t, b)
	name := coordtest.Name(t)
	var members []backend.Member
	for range waiters {
		members = append(members, join(t, s, name, ""))
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*ttl, errEnough)
	defer cancel()
	var waiting sync.WaitGroup
	for _, m := range members {
		waiting.Go(func() { s.Gone(ctx, m) })
	}
	waiting.Wait()
	if err := s.Err(); err != nil {
		if !watch.NotJudged(ttl, "the session has ended: %v", err) {
			t.Fatalf("the session has ended: %v", err)
		}
		return
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d waiters at %d connections: %v", waiters, connections, asked)
	// At most one query is sent between two looks for all who have none: 16 in two TTL.
	if queries, looks := asked["query"], asked["read"]; (queries > waiters+20 || looks < 4) && !watch.NotJudged(ttl, "%v", asked) {
		t.Errorf("%d waiters at %d connections sent %d queries and %d reads, want few queries, and reads for those who have none", waiters, connections, queries, looks)
	}
}

// The connections of processes that lead many elections break again and again. The agent keeps each query
// that nobody awaits any more for up to a minute, and grants 200 connections to an address. No term may end
// for that, and each leader is told when it is removed, or asked to resign.
func TestManyLeadersOutliveBrokenConnections(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 4} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			t.Parallel()
			manyLeadersOutlive(t, processes)
		})
	}
}

func manyLeadersOutlive(t *testing.T, processes int) {
	const ttl, elections, breaks = 8 * time.Second, 60, 3
	c := coordtest.NewConsul(t, nil)
	addr, name := c.Addrs()[0], coordtest.Name(t)
	p := coordtest.NewProxy(t, addr)
	var bs []*consul.Backend
	for range processes {
		bs = append(bs, open(t, p.Addr(), &consul.Options{TTL: ttl}))
	}
	watch, terms := calm.Start(t), make([]*elect.Term, elections)
	var campaigns sync.WaitGroup
	for i := range terms {
		campaigns.Go(func() {
			var err error
			if terms[i], err = elect.New(bs[i%processes], fmt.Sprint(name, i), nil).Campaign(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	campaigns.Wait()
	if t.Failed() {
		t.FailNow()
	}
	time.Sleep(time.Second)
	lost := func() (n int) {
		for _, term := range terms {
			if term.Check() != nil {
				n++
			}
		}
		return n
	}
	for i := range breaks {
		p.Reset()
		time.Sleep(3 * time.Second / 2)
		if n := lost(); n > 0 {
			if !watch.NotJudged(ttl/3, "%d of %d terms have ended soon after %d breaks", n, elections, i+1) {
				t.Fatalf("%d of %d terms have ended soon after %d breaks", n, elections, i+1)
			}
			return
		}
	}
	time.Sleep(2 * ttl)
	if n := lost(); n > 0 {
		if !watch.NotJudged(ttl/3, "%d of %d terms have ended after %d breaks", n, elections, breaks) {
			t.Fatalf("%d of %d terms have ended after %d breaks", n, elections, breaks)
		}
		return
	}
	kv := admin(t, addr).KV()
	operator := open(t, addr, nil)
	for i, term := range terms {
		var err error
		if line := term.Member().Line; i%10 == 0 {
			_, err = operate.New(operator, line, "").AskToResign(t.Context(), nil)
		} else {
			_, err = kv.Delete(line+"/"+term.Member().Key, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	deadline, told := within(t, time.Minute), calm.Start(t)
	for _, term := range terms {
		select {
		case <-term.Context().Done():
		case <-deadline.Done():
			t.Fatalf("%d of %d leaders do not know that they were removed, or asked to resign", elections-lost(), elections)
		}
	}
	told.Within(ttl, "to tell leaders that they were removed, or asked to resign,")
}

// When queries break one after the other, and no renewal is answered, no renewal goes out for each of them.
func TestBrokenQueriesSendOneRenewal(t *testing.T) {
	t.Parallel()
	const queries = 50
	b := open(t, server(t), &consul.Options{TTL: 30 * time.Second})
	var stalls atomic.Bool
	var sent, waiting atomic.Int32
	breaks := make(chan struct{})
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		switch kind := kindOf(req); {
		case kind == "renewal" && stalls.Load():
			sent.Add(1)
			<-req.Context().Done()
			return nil, req.Context().Err()
		case kind == "query":
			waiting.Add(1)
			select {
			case <-breaks:
				return nil, io.ErrUnexpectedEOF
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}
		return next.RoundTrip(req)
	})
	s, name := sessionOf(t, b), coordtest.Name(t)
	ctx, cancel := context.WithCancel(t.Context())
	var gone sync.WaitGroup
	defer gone.Wait()
	defer cancel()
	for i := range queries {
		m := join(t, s, fmt.Sprint(name, i), "")
		gone.Go(func() { _ = s.Gone(ctx, m) })
	}
	for waiting.Load() < queries {
		time.Sleep(10 * time.Millisecond)
	}
	stalls.Store(true)
	for range queries {
		breaks <- struct{}{}
		time.Sleep(10 * time.Millisecond) // so that each is noticed
	}
	if n := sent.Load(); n < 1 || n > 2 { // a regular one may be among them
		t.Errorf("%d queries broke, and %d renewals went out that were not answered, want one", queries, n)
	}
}

// answering makes an answer to a request.
func answering(req *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: make(http.Header), Body: io.NopCloser(strings.NewReader(body)), Request: req}
}

// crowded opens a backend for whose blocking queries the agent has no connection. f, if not nil, sees the other
// requests.
func crowded(t *testing.T, o *consul.Options, f func(req *http.Request)) *consul.Backend {
	t.Helper()
	b := open(t, server(t), o)
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if kindOf(req) == "query" {
			return answering(req, http.StatusTooManyRequests, "Your IP is issuing too many concurrent connections, please rate limit your calls\n"), nil
		}
		if f != nil {
			f(req)
		}
		return next.RoundTrip(req)
	})
	return b
}

// A leader that has no query, and is connected, learns soon that it was removed: it is looked for before all
// others, and if some cannot be looked for.
func TestCrowdedAgentTellsLeaders(t *testing.T) {
	t.Parallel()
	const waiters = 140 // more than one request reads
	addr, name := server(t), coordtest.Name(t)
	var deny atomic.Bool
	b := open(t, addr, &consul.Options{TTL: 30 * time.Second})
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		switch kind := kindOf(req); {
		case kind == "query":
			return answering(req, http.StatusTooManyRequests, "Your IP is issuing too many concurrent connections, please rate limit your calls\n"), nil
		case kind == "read" && deny.Load() && asksFor(t, req, name+"-0\""):
			return answering(req, http.StatusForbidden, "Permission denied: token lacks permission 'key:read'"), nil
		}
		return next.RoundTrip(req)
	})
	s := sessionOf(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	for i := range waiters {
		watching.Go(func() { _, _ = s.Watch(ctx, fmt.Sprint(name, "-", i), backend.Absent) })
	}
	time.Sleep(time.Second)
	terms := make([]*elect.Term, 2)
	for i := range terms {
		var err error
		if terms[i], err = elect.New(b, fmt.Sprint(name, "-led-", i), nil).Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second)
	deny.Store(true)
	for _, term := range terms {
		if _, err := admin(t, addr).KV().Delete(term.Member().Line+"/"+term.Member().Key, nil); err != nil {
			t.Fatal(err)
		}
		watch := calm.Start(t)
		select {
		case <-term.Context().Done():
			watch.Within(5*time.Second, "to tell a leader without a query that it was removed")
		case <-within(t, time.Minute).Done():
			t.Error("a leader without a query does not know a minute later that it was removed")
		}
	}
}

// asksFor reports whether the text is in the body of a request.
func asksFor(t *testing.T, req *http.Request, text string) bool {
	t.Helper()
	if req.Body == nil {
		return false
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Error(err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte(text))
}

// Who has no query, and waits for a record that stands, is told also if it is deleted before the first look.
func TestCrowdedAgentTellsOfADeletion(t *testing.T) {
	t.Parallel()
	s, other := sessionOf(t, crowded(t, nil, nil)), session(t, server(t), nil)
	name := coordtest.Name(t)
	var watching sync.WaitGroup
	const records = 4 // one has the first query, and is looked for later
	for i := range records {
		record := fmt.Sprint(name, i)
		v, err := s.Put(t.Context(), record, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		watching.Go(func() {
			if r, err := s.Watch(within(t, time.Minute), record, v); err != nil || r.Version != backend.Absent {
				t.Errorf("Watch of a record that was deleted returned %+v, %v", r, err)
			}
		})
	}
	time.Sleep(200 * time.Millisecond) // less than until the first look
	for i := range records {
		if err := other.Delete(t.Context(), fmt.Sprint(name, i), nil); err != nil {
			t.Fatal(err)
		}
	}
	watching.Wait()
}

// Who has no query, and waits for a line, does not read the line again and again.
func TestCrowdedAgentReadsNoLines(t *testing.T) {
	t.Parallel()
	const looks = 4 * time.Second
	var lists atomic.Int32
	s := sessionOf(t, crowded(t, nil, func(req *http.Request) {
		if req.URL.Query().Has("recurse") {
			lists.Add(1)
		}
	}))
	name := coordtest.Name(t)
	other := session(t, server(t), nil)
	first := join(t, other, name, "")
	l, err := s.Line(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	go func() {
		l, err := s.WatchLine(within(t, time.Minute), name, l)
		if err == nil && len(l.Members) != 0 {
			err = fmt.Errorf("the line is %+v", l)
		}
		told <- err
	}()
	time.Sleep(looks)
	if n := lists.Load(); n > 2 {
		t.Errorf("one that waits has read the whole line %d times in %v, want once", n, looks)
	}
	if err := other.Leave(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := <-told; err != nil {
		t.Error(err)
	}
}
