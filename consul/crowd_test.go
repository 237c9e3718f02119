package consul_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// If the agent has no connection left for a waiter's query, the waiter must not ask more
// often: it would take connections from others.
func TestCrowdedAgent(t *testing.T) {
	t.Parallel()
	const ttl, waiters, connections = 3 * time.Second, 40, 20
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Config: []string{"limits{http_max_conns_per_client=20}"}})
	b := open(t, c.Addrs()[0], &consul.Options{TTL: ttl})
	var mu sync.Mutex
	asked := make(map[string]int)
	consul.OnRequest(b, func(req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[kindOf(req)]++
	})
	s := sessionOf(t, b)
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
		t.Fatalf("the session has ended: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d waiters at %d connections: %v", waiters, connections, asked)
	// The pauses grow to a third of the TTL: a dozen in two TTL.
	if n := asked["query"]; n <= waiters || n > waiters+20*(waiters-connections) {
		t.Errorf("%d waiters at %d connections sent %d queries, want more than one each, and few", waiters, connections, n)
	}
}
