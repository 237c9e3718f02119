package consul_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// kindOf returns what the request is for.
func kindOf(req *http.Request) string {
	switch {
	case strings.HasPrefix(req.URL.Path, "/v1/session/renew/"):
		return "renewal"
	case req.URL.Path == "/v1/status/leader":
		return "leader"
	case req.URL.Query().Has("index"):
		return "query"
	case req.URL.Query().Has("consistent"):
		return "read"
	}
	return req.Method + " " + req.URL.Path
}

// A candidate that waits costs the renewals of its session, each with the question who
// leads Consul, one blocking query, which is asked again when its time is over, and the
// slow re-check that all waiters of its session share. It costs nothing when others come and go, in front of its predecessor or
// behind itself.
func TestIdleWaiter(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	others := session(t, addr, nil)
	first, middle := join(t, others, name, ""), join(t, others, name, "")
	join(t, others, name, "") // the one in front

	b := open(t, addr, &consul.Options{TTL: ttl})
	var mu sync.Mutex
	requests := make(map[string]int)
	waiting := make(chan struct{})
	consul.OnRequest(b, func(req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		kind := kindOf(req)
		if kind == "query" && requests[kind] == 0 {
			clear(requests) // what it took to begin
			close(waiting)
		}
		requests[kind]++
	})
	watch := calm.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := elect.New(b, name, nil).Campaign(ctx)
		failed <- err
	}()
	select {
	case <-waiting:
	case err := <-failed:
		t.Fatalf("Campaign returned %v", err)
	}
	last := join(t, others, name, "")

	// This is long enough for two ends of a query, which come every four TTL and a
	// little.
	const n = 9
	kinds := []string{"renewal", "leader", "query", "read"}
	begin := time.Now()
	for _, m := range []backend.Member{first, middle, last} {
		if err := others.Leave(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		if err := others.Leave(t.Context(), join(t, others, name, "")); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-time.After(n*ttl - time.Since(begin)):
	case err := <-failed:
		if !watch.NotJudged(ttl/3, "Campaign returned %v", err) {
			t.Fatalf("Campaign returned %v", err)
		}
		return
	}
	mu.Lock()
	counts := maps.Clone(requests)
	mu.Unlock()
	took := time.Since(begin)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("Campaign returned %v, want the cause of its context", err)
	}
	// On a busy machine there may be fewer.
	ttls := float64(took) / float64(ttl)
	for kind, most := range map[string]float64{
		"renewal": 3*ttls + 1,
		"leader":  3*ttls + 1, // with each renewal
		"query":   ttls/4 + 1,
		"read":    ttls + 1 + ttls/4 + 1, // the re-checks, with the index of all keys now and then
	} {
		if got := counts[kind]; got == 0 || float64(got) > most && !watch.NotJudged(ttl/3, "%d requests of kind %s", got, kind) {
			t.Errorf("in %.1f TTL there were %d requests of kind %s, want at most %.1f, and some", ttls, got, kind, most)
		}
	}
	// In a minute there are four TTL of the default.
	perMinute := func(kind string) float64 { return float64(counts[kind]) / ttls * 4 }
	var sum float64
	for _, kind := range kinds {
		sum += perMinute(kind)
	}
	t.Logf("an idle waiter costs %.1f requests per minute at the default TTL: %.1f renewals, as many for the leader, %.1f blocking queries, %.1f reads",
		sum, perMinute("renewal"), perMinute("query"), perMinute("read"))
	if len(counts) != len(kinds) && !watch.NotJudged(ttl/3, "requests: %v", counts) {
		t.Errorf("there were other requests: %v", counts)
	}
}

// A query waits for as long as it is to, whatever limit the application has for its own requests.
func TestTimeoutOfTheClient(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	const limit = time.Second
	for what, cfg := range map[string]*api.Config{
		"client":    {Address: addr, HttpClient: &http.Client{Timeout: limit}},
		"transport": {Address: addr, Transport: &http.Transport{ResponseHeaderTimeout: limit}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := name + what
			b := openWith(t, cfg, nil)
			ended := make(chan error, 10)
			consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				resp, err := next.RoundTrip(req)
				if kindOf(req) == "query" {
					ended <- err
				}
				return resp, err
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, m := sessionOf(t, b), join(t, session(t, addr, nil), name, "")
			gone := make(chan error, 1)
			go func() { gone <- s.Gone(ctx, m) }()
			select {
			case err := <-ended:
				t.Errorf("a query has ended: %v", err)
			case err := <-gone:
				t.Errorf("who waits was told: %v", err)
			case <-time.After(2 * limit):
			}
			cancel()
			<-gone
		})
	}
}

// A transport of the application with few connections keeps no query waiting for another.
func TestConnectionsOfTheTransport(t *testing.T) {
	t.Parallel()
	addr, name := server(t), coordtest.Name(t)
	b := openWith(t, &api.Config{Address: addr, Transport: &http.Transport{MaxConnsPerHost: 1}}, nil)
	asked := make(chan struct{}, 100)
	consul.OnRequest(b, func(req *http.Request) {
		if kindOf(req) == "query" {
			asked <- struct{}{}
		}
	})
	s, other := sessionOf(t, b), session(t, addr, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stays, goes = make(chan error, 1), make(chan error, 1)
	first, second := join(t, other, name+"-1", ""), join(t, other, name+"-2", "")
	go func() { stays <- s.Gone(ctx, first) }()
	<-asked
	go func() { goes <- s.Gone(ctx, second) }()
	<-asked
	if err := other.Leave(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	select {
	case err := <-goes:
		if err != nil {
			t.Error(err)
		}
	case <-within(t, time.Minute).Done():
		t.Error("who waits for the second member has not heard that it left")
	}
	watch.Within(4*time.Second, "to hear that the second member left")
	cancel()
	<-stays
}
