package etcd_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// TestCost measures what docs/etcd.md says of requests, and holds it to that. Run it
// alone with -v for numbers of time.
func TestCost(t *testing.T) {
	t.Parallel()
	addr := coordtest.NewEtcd(t, nil).Addrs()[0]

	t.Run("at rest", func(t *testing.T) {
		name := coordtest.Name(t)
		leads, waits, idle := newClientOf(t, addr, ttl), newClientOf(t, addr, ttl), newClientOf(t, addr, ttl)
		term := campaign(t, leads, name)
		won := behind(t, waits, name)
		idle.session(t)
		most := map[*client]int64{leads: 12, waits: 8, idle: 4} // in a TTL
		before, began, watch := make(map[*client]int64), time.Now(), calm.Start(t)
		for c := range most {
			before[c] = c.rig.Requests()
		}
		time.Sleep(3 * ttl)
		for what, c := range map[string]*client{"a leader": leads, "a waiter": waits, "a session": idle} {
			n := float64(c.rig.Requests()-before[c]) / (float64(time.Since(began)) / float64(ttl))
			t.Logf("%s sends %.1f requests in a TTL", what, n)
			if n > float64(most[c])+1 && !watch.NotJudged(ttl/4, "%s sends %.1f requests in a TTL", what, n) { // the edges of the time
				t.Errorf("%s sends %.1f requests in a TTL; want %d at most", what, n, most[c])
			}
		}
		resign(t, term)
		resign(t, <-won)
	})

	t.Run("joining", func(t *testing.T) {
		name, s := coordtest.Name(t), newClient(t, addr)
		joined := func(c *client) (fewest int64, j backend.Joined) {
			fewest = 1 << 62
			for i := range 5 {
				if i > 0 {
					if err := c.session(t).Leave(t.Context(), j.Member); err != nil {
						t.Fatal(err)
					}
				}
				before := c.rig.Requests()
				var err error
				if j, err = c.session(t).Join(t.Context(), name, "", name+".fence"); err != nil {
					t.Fatal(err)
				}
				fewest = min(fewest, c.rig.Requests()-before)
			}
			return fewest, j
		}
		n, j := joined(s)
		if n != 1 || j.Place == nil || !j.Place.First || j.Record == nil || j.Record.Version != backend.Absent {
			t.Errorf("who joins an empty line is told %+v by %d requests", j, n)
		}
		if n, j := joined(newClient(t, addr)); n != 1 || j.Place != nil || j.Record == nil {
			t.Errorf("who joins behind another is told %+v by %d requests", j, n)
		}
		for range 8 {
			join(t, s.session(t), name, "crowd")
		}
		if n, j := joined(s); n != 1 || j.Place != nil || j.Record != nil {
			t.Errorf("who joins a crowd of its own session is told %+v by %d requests", j, n)
		}
	})

	const rounds = 10
	for _, length := range []int{5, 200} {
		t.Run(fmt.Sprintf("a handover in a line of %d", length), func(t *testing.T) {
			a, b, crowd := newClient(t, addr), newClient(t, addr), newClient(t, addr).session(t)
			var took []time.Duration
			fewest := int64(1 << 62)
			for range rounds {
				name := coordtest.Name(t)
				term := campaign(t, a, name)
				won := behind(t, b, name)
				for range length - 2 {
					join(t, crowd, name, "crowd")
				}
				sent, began := a.rig.Requests()+b.rig.Requests(), time.Now()
				resign(t, term)
				next := <-won
				took = append(took, time.Since(began))
				fewest = min(fewest, a.rig.Requests()+b.rig.Requests()-sent)
				resign(t, next)
			}
			slices.Sort(took)
			t.Logf("a handover takes %v (p50), %v at most of %d, and %d requests", took[len(took)/2], took[len(took)-1], len(took), fewest)
			if fewest > 2 { // a delete that is watched, and a read
				t.Errorf("a handover takes %d requests", fewest)
			}
		})
	}
}
