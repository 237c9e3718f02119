package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/rig/lane"
)

func TestMain(m *testing.M) {
	if candidate.Is(os.Args) {
		os.Exit(candidate.Main(os.Args, nil))
	}
	os.Exit(m.Run())
}

// What an operator does takes no session time, and not all libraries tell of it, so that their
// leaders act on, and are seen to.
func TestSmoke(t *testing.T) {
	lane.All(t)
	const patience = 3 * time.Second
	for fault, tells := range map[string]map[string]bool{
		"deleted": {
			"etcd: succession":               true,
			"etcd: concurrency.Election":     false,
			"consul: succession":             true,
			"consul: api.Lock":               true,
			"zookeeper: succession":          true,
			"zookeeper: Curator LeaderLatch": false,
			"zookeeper: kazoo Election":      false,
			"postgres: succession":           true,
		},
		"session": {
			"postgres: succession":            true,
			"postgres: pg_advisory_lock, pgx": false,
		},
	} {
		for _, c := range measure(t, fault, "^("+strings.Join(slices.Collect(maps.Keys(tells)), "|")+")$", len(tells), patience) {
			o := c.Runs[0]
			if tells[c.Coordinator+": "+c.Library] {
				if o.Old != oldStopped || o.OverlapOpen || o.VacancyOpen {
					t.Errorf("%+v: the old leader acted on, or nobody followed", c)
				}
			} else if o.Old != oldNever || !o.OverlapOpen || o.Overlap < patience {
				t.Errorf("%+v: the old leader stopped, which this library does not tell it to", c)
			}
		}
	}
}

// Somebody follows where a leader on Kubernetes crashes. With client-go, who leads after a deletion is a matter of
// chance: whoever is first to find the Lease gone creates it again.
func TestKubernetes(t *testing.T) {
	lane.All(t)
	for _, c := range measure(t, "crash", "^kubernetes:", 5, 30*time.Second) {
		if o := c.Runs[0]; o.Old != oldGone || o.Overlap != 0 || o.VacancyOpen {
			t.Errorf("%+v: nobody followed the leader that had crashed", c)
		}
	}
}

// measure puts libraries under a fault once, and returns the rows, of which there must be n.
func measure(t *testing.T, fault, libraries string, n int, patience time.Duration) (measured []*cell) {
	t.Helper()
	p := plan{n: 1, jobs: min(n, 5), session: 6 * time.Second, patience: patience, progress: t.Output()}
	if err := p.choose(fault, libraries); err != nil {
		t.Fatal(err)
	}
	r, err := p.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != n {
		t.Errorf("measured %d rows, want %d", len(r.Cells), n)
	}
	for _, c := range r.Cells {
		if len(c.Runs) != 1 {
			t.Errorf("%s on %s was not measured: %v", c.Library, c.Coordinator, c.Errors)
			continue
		}
		if c.Server == "" || c.Server == candidate.Unknown || c.Version == candidate.Unknown {
			t.Errorf("versions are missing in %+v", c)
		}
		measured = append(measured, c)
	}
	return measured
}
