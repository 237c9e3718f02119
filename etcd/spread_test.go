package etcd_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// TestReletSpread makes etcd change its leader under sessions whose heartbeats go out at
// about the same time. A leader takes another lease at once. Waiters take one later, each
// at another moment, so that etcd does not get all their writes at first.
func TestReletSpread(t *testing.T) {
	t.Parallel()
	const ttl, waiters = 8 * time.Second, 30
	cluster := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	name := coordtest.Name(t)
	term := campaign(t, newCluster(t, cluster, ttl), name)
	sessions := make(map[backend.Session]int64)
	for range waiters {
		s, err := newCluster(t, cluster, ttl).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		join(t, s, name, "x")
		sessions[s] = etcd.Lease(s)
	}
	watch := calm.Start(t)
	moveLeader(t, cluster)

	var began, ended time.Time
	for ctx := within(t, time.Minute); len(sessions) > 0; time.Sleep(5 * time.Millisecond) { // nothing tells that a lease is another
		for s, old := range sessions {
			if err := s.Err(); err != nil || ctx.Err() != nil {
				if !watch.NotJudged(ttl/4, "%d sessions have their old lease: %v", len(sessions), err) {
					t.Fatalf("%d sessions have their old lease: %v", len(sessions), err)
				}
				return
			}
			if etcd.Lease(s) == old {
				continue
			}
			delete(sessions, s)
			if ended = time.Now(); began.IsZero() {
				began = ended
			}
		}
	}
	if d := ended.Sub(began); d < ttl/8 && !watch.NotJudged(ttl/4, "they took another lease within %v", d) {
		t.Errorf("%d sessions that wait took another lease within %v", waiters, d)
	}
	if err := term.Check(); err != nil && !watch.NotJudged(ttl/4, "the term has ended: %v", err) {
		t.Errorf("the term has ended: %v", err)
	}
}
