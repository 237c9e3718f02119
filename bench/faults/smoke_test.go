package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

func TestMain(m *testing.M) {
	if candidate.Is(os.Args) {
		os.Exit(candidate.Main(os.Args, nil))
	}
	os.Exit(m.Run())
}

var kubernetes = flag.Bool("kubernetes", false, "TestKubernetes: put client-go under a fault, on an API server that is built first if it must be")

// An operator's deletion takes no session time, and not all libraries tell of it, so that their
// leaders act on.
func TestSmoke(t *testing.T) {
	smoke(t, map[string]bool{
		"etcd: succession":               true,
		"etcd: concurrency.Election":     false,
		"consul: succession":             true,
		"consul: api.Lock":               true,
		"zookeeper: succession":          true,
		"zookeeper: Curator LeaderLatch": false,
		"zookeeper: kazoo Election":      false,
	})
}

// client-go finds the Lease gone when it renews it.
func TestKubernetes(t *testing.T) {
	if !*kubernetes {
		t.Skip("the first build of the API server takes five minutes: it takes the flag -kubernetes")
	}
	smoke(t, map[string]bool{"kubernetes: client-go leaderelection": true, "kubernetes: client-go leaderelection (no timeout)": true})
}

// smoke deletes the leaders' keys. tells has the libraries, and whether they tell their leaders.
func smoke(t *testing.T, tells map[string]bool) {
	p := plan{n: 1, jobs: len(tells), session: 6 * time.Second, patience: 3 * time.Second, progress: t.Output()}
	var ids []string
	for id := range tells {
		ids = append(ids, regexp.QuoteMeta(id))
	}
	if err := p.choose("deleted", "^("+strings.Join(ids, "|")+")$"); err != nil {
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
