package etcd_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/recipes/group"
)

var crowd = flag.Int("crowd", 60, "TestCrowdFollows: how many follow the group that they are in")

// served returns how many transactions the server has answered.
func served(t *testing.T, addr string) (n float64) {
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "grpc_server_started_total") && strings.Contains(lines.Text(), `"Txn"`) {
			_, after, _ := strings.Cut(lines.Text(), "} ")
			fmt.Sscan(after, &n)
		}
	}
	return n
}

// still returns how many transactions the server has answered once no more come for a second: all wait.
func still(t *testing.T, addr string) float64 {
	for before := served(t, addr); ; {
		time.Sleep(time.Second)
		now := served(t, addr)
		if now == before {
			return now
		}
		before = now
	}
}

// A group in which all follow, each with a value and a session of its own: when one joins, all see it, at the price of
// a few requests each. No session is lost, and none asks twice because the server is slow.
func TestCrowdFollows(t *testing.T) {
	n := *crowd
	t.Parallel()
	addr := coordtest.NewEtcd(t, nil).Addrs()[0]
	name := coordtest.Name(t)
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	var present atomic.Int64 // who sees at least one more than the crowd
	var all atomic.Int64     // who sees the whole crowd
	everybody, joined := make(chan struct{}), make(chan struct{})
	enter := func(id string) (*group.Group, *group.Presence) {
		u, err := backend.ParseURL("etcd://" + addr + "/?ttl=60s&connect=60s")
		if err != nil {
			t.Fatal(err)
		}
		b, err := etcd.Open(u)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		g := group.New(b, name, &group.Options{ID: id, Value: "10.0.0.1:80"})
		p, err := g.Join(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return g, p
	}
	var presences []*group.Presence
	var groups []*group.Group
	for i := range n {
		g, p := enter(fmt.Sprint("web-", i))
		if err := p.Set(ctx, "50%"); err != nil {
			t.Fatal(err)
		}
		groups, presences = append(groups, g), append(presences, p)
	}
	for _, g := range groups {
		following.Go(func() {
			whole, more := false, false
			for members, err := range g.Follow(ctx) {
				switch {
				case err != nil:
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				case !more && len(members) > n:
					if more = true; present.Add(1) == int64(n) {
						close(joined)
					}
				case !whole && len(members) == n:
					if whole = true; all.Add(1) == int64(n) {
						close(everybody)
					}
				}
			}
		})
	}
	<-everybody
	before := still(t, addr)
	began := time.Now()
	enter("another")
	select {
	case <-joined:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%d of %d see it", present.Load(), n)
	}
	took := time.Since(began)
	sent := still(t, addr) - before
	t.Logf("one joins %d who follow: all see it after %v, %.0f requests", n, took, sent)
	for i, p := range presences {
		if err := p.Check(); err != nil {
			t.Errorf("web-%d: %v", i, err)
		}
	}
	if sent > float64(3*n+50) {
		t.Errorf("that took %.0f requests, want three each at most", sent)
	}
}
