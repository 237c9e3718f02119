package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

func TestMain(m *testing.M) {
	if candidate.Is(os.Args) {
		os.Exit(candidate.Main(os.Args))
	}
	os.Exit(m.Run())
}

// An operator's deletion takes no session time, and not all libraries tell of it, so that their
// leaders act on.
func TestSmoke(t *testing.T) {
	tells := map[string]bool{
		"etcd: succession":               true,
		"etcd: concurrency.Election":     false,
		"consul: succession":             true,
		"consul: api.Lock":               true,
		"zookeeper: succession":          true,
		"zookeeper: Curator LeaderLatch": false,
		"zookeeper: kazoo Election":      false,
	}
	p := plan{n: 1, jobs: len(tells), session: 6 * time.Second, patience: 3 * time.Second, progress: t.Output()}
	if err := p.choose("deleted", "^("+strings.Join(slices.Collect(maps.Keys(tells)), "|")+")$"); err != nil {
		t.Fatal(err)
	}
	r, err := p.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != len(tells) {
		t.Errorf("measured %d rows, want %d", len(r.Cells), len(tells))
	}
	for _, c := range r.Cells {
		if len(c.Runs) != 1 {
			t.Errorf("%s on %s was not measured: %v", c.Library, c.Coordinator, c.Errors)
			continue
		}
		if c.Server == "" || c.Server == candidate.Unknown || c.Version == candidate.Unknown {
			t.Errorf("versions are missing in %+v", c)
		}
		o := c.Runs[0]
		if tells[c.Coordinator+": "+c.Library] {
			if o.Old != oldStopped || o.OverlapOpen || o.VacancyOpen {
				t.Errorf("%+v: the old leader acted on, or nobody followed", c)
			}
		} else if o.Old != oldNever || !o.OverlapOpen || o.Overlap < p.patience {
			t.Errorf("%+v: the old leader stopped, which this library does not tell it to", c)
		}
	}
}
