package conformance_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/internal/broken"
	"github.com/succession-dev/succession/memory"
)

// A cluster simulates three servers on top of one coordinator in memory, to test the rows of
// the fault table that need servers. Client n is connected to server n modulo 3, and if it knows all
// servers it goes to another when that is down. Server 1 leads until it is down.
type cluster struct {
	c    *memory.Coordinator
	over chan struct{} // closed at the end of the test

	mu      sync.Mutex
	clients []backend.Backend
	know    map[backend.Backend]bool // all servers
	down    [3]bool
	alone   [3]bool // isolated
	acts    []string
}

func (k *cluster) notes(act string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acts = append(k.acts, act)
}

// does changes a server, and then cuts or heals each client's network as the servers' states
// require.
func (k *cluster) does(act string, change func()) {
	k.notes(act)
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
	quorum := 0
	for i := range k.down {
		if !k.down[i] && !k.alone[i] {
			quorum++
		}
	}
	for i, b := range k.clients {
		lonely := quorum < 2 || k.alone[i%3]
		w, flawed := b.(*broken.Backend)
		stays := !k.know[b] || flawed && w.Faithful()
		if lonely || stays && k.down[i%3] {
			of(b).Cut()
		} else {
			of(b).Heal()
		}
		if flawed {
			w.Isolate(lonely && !k.down[i%3])
		}
	}
}

// flawed calls f with each client that has a flaw.
func (k *cluster) flawed(f func(i int, b *broken.Backend)) {
	k.mu.Lock()
	all := slices.Clone(k.clients)
	k.mu.Unlock()
	for i, b := range all {
		if w, ok := b.(*broken.Backend); ok {
			f(i, w)
		}
	}
}

func (k *cluster) leader() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, i := range []int{1, 2, 0} {
		if !k.down[i] && !k.alone[i] {
			return i
		}
	}
	return 1
}

func (k *cluster) of(b backend.Backend) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Index(k.clients, b) % 3
}

func (k *cluster) server(i int) conformance.ServerFaults {
	set := func(act string, what *bool, value bool) func() error {
		return func() error {
			k.does(act+strconv.Itoa(i), func() { *what = value })
			return nil
		}
	}
	kill, start := set("kill", &k.down[i], true), set("start", &k.down[i], false)
	return conformance.ServerFaults{
		Kill: func() error {
			defer k.flawed(func(client int, b *broken.Backend) {
				if client%3 == i {
					b.Disconnect()
				}
			})
			return kill()
		},
		Start: func(ctx context.Context) error {
			go func() { <-k.over }() // like a goroutine that waits for a server's end; it belongs to no client
			return start()
		},
		Pause:  set("pause", &k.down[i], true),
		Resume: set("resume", &k.down[i], false),
		Isolate: func() (func(), error) {
			err := set("isolate", &k.alone[i], true)()
			return func() { set("heal", &k.alone[i], false)() }, err
		},
	}
}

// newCluster returns three servers on a new coordinator. The caller closes over.
func newCluster() *cluster {
	return &cluster{over: make(chan struct{}), know: make(map[backend.Backend]bool), c: memory.New(&memory.Options{TTL: ttl, Slack: slack})}
}

// harness returns the harness of the coordinator, with the faults of the servers added.
func (k *cluster) harness(wrap func(backend.Backend) backend.Backend) conformance.Harness {
	h := harnessOf(k.c, func(b backend.Backend) backend.Backend {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.clients = append(k.clients, wrap(b))
		return k.clients[len(k.clients)-1]
	})
	h.Lacks = map[conformance.Fault]string{conformance.Process: "it lives in one process"}
	cut := h.Faults.Cut
	h.Faults.Cut = func(b backend.Backend) func() {
		k.notes("cut")
		f := followerIn(b)
		if f != nil {
			f.cut.Store(true)
		}
		heal := cut(b)
		return func() {
			k.notes("heal")
			if f != nil {
				f.cut.Store(false)
			}
			heal()
		}
	}
	h.Faults.Compact = func(context.Context) error {
		k.notes("compact")
		k.flawed(func(_ int, b *broken.Backend) { b.Compact() })
		return nil
	}
	h.Faults.Clock = func(_ context.Context, d time.Duration) (func(), error) {
		k.notes("clock" + d.String())
		k.flawed(func(_ int, b *broken.Backend) { b.Clock(d) })
		return func() {
			k.notes("restore")
			k.flawed(func(_ int, b *broken.Backend) { b.Clock(0) })
		}, nil
	}
	h.Faults.Cluster = &conformance.ClusterFaults{
		Servers: []conformance.ServerFaults{k.server(0), k.server(1), k.server(2)},
		Leader:  func(context.Context) (int, error) { return k.leader(), nil },
		Of:      k.of,
		Failover: func(ctx context.Context) (backend.Backend, error) {
			b, err := h.Open(ctx)
			k.mu.Lock()
			defer k.mu.Unlock()
			k.know[b] = true
			return b, err
		},
	}
	h.Faults.Promote = func(context.Context) (*conformance.Replica, error) { return newStandby(wrap).replica(), nil }
	h.Faults.PromoteBeside = func(context.Context) (*conformance.Replica, error) {
		s := newStandby(wrap)
		s.beside = true
		return s.replica(), nil
	}
	return h
}

// TestClusterFaults says which servers the rules hit, and that each is brought back.
func TestClusterFaults(t *testing.T) {
	for id, want := range map[string][]string{
		"rolling":       {"kill0", "start0", "kill1", "start1", "kill2", "start2"},
		"leader-killed": {"kill1", "start1"},
		"leader-paused": {"pause1", "resume1"},
		"leader-cut":    {"isolate1", "heal1"},
		"follower-cut":  {"isolate2", "heal2"},
		"server-silent": {"pause0", "resume0", "pause2", "resume2"},
		"quorum":        {"pause1", "pause2", "resume2", "resume1", "kill1", "kill2", "start2", "start1"},
		"compacted":     {"cut", "compact", "heal"},
		"clock":         {"clock1h0m0s", "restore", "clock-1h0m0s", "restore"},
	} {
		t.Run(id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newCluster()
				defer close(k.over)
				h := k.harness(plain)
				h.Only = []string{"Fault." + id}
				if report := conformance.Check(t.Context(), h, nil); report.Err() != nil {
					t.Fatal(report.Results)
				}
				if !slices.Equal(k.acts, want) {
					t.Errorf("done to the servers: %q, want %q", k.acts, want)
				}
			})
		})
	}
}

// A server that is not brought back fails the rule, because a candidate that is connected to it
// is stuck.
func TestClusterFaultThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCluster()
		defer close(k.over)
		h := k.harness(plain)
		h.Only = []string{"Fault.leader-paused"}
		for i := range h.Faults.Cluster.Servers {
			h.Faults.Cluster.Servers[i].Resume = func() error { return nil }
		}
		report := conformance.Check(t.Context(), h, nil)
		if report.Count(conformance.Failed) != 1 {
			t.Errorf("got %v after %q", report, k.acts)
		}
	})
}
