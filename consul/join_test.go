package consul_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// Fifty callers try again and again to join, each for a shorter time than the way to Consul takes. Few
// members stand that nobody waits for, and soon after the last try none does: somebody else
// who joins meanwhile is first at once.
func TestShortTries(t *testing.T) {
	t.Parallel()
	const oneWay, patience, tries, most = 100 * time.Millisecond, 150 * time.Millisecond, 3 * time.Second, 32
	addr, name := server(t), coordtest.Name(t)
	p := coordtest.NewProxy(t, addr)
	s := session(t, p.Addr(), &consul.Options{TTL: 15 * time.Second})
	p.Delay(proxy.ToServer, oneWay)
	p.Delay(proxy.ToClient, oneWay)
	enough := time.Now().Add(tries)
	var trying sync.WaitGroup
	for range 50 {
		trying.Go(func() {
			for time.Now().Before(enough) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errEnough)
				if m, err := s.Join(ctx, name, ""); err == nil {
					s.Leave(t.Context(), m)
				}
				cancel()
			}
		})
	}
	worst := 0
	for time.Now().Before(enough) {
		worst = max(worst, len(members(t, addr, name)))
		time.Sleep(50 * time.Millisecond)
	}
	other := session(t, addr, nil)
	begun := time.Now()
	m := join(t, other, name, "")
	for first := false; !first; {
		p, err := other.Ahead(t.Context(), m)
		if first = p.First; err == nil && !first {
			err = other.(backend.PlaceWatcher).WatchPlace(within(t, 5*time.Second), m, &p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("up to %d members stood, and somebody else was first after %v", worst, time.Since(begun).Round(time.Millisecond))
	if worst > most {
		t.Errorf("%d members stood that nobody waits for, want at most %d", worst, most)
	}
	trying.Wait()
	for keys := members(t, addr, name); len(keys) > 1; keys = members(t, addr, name) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-within(t, 5*time.Second).Done():
			t.Fatalf("%d members stand, of which one has an owner", len(keys))
		}
	}
}
