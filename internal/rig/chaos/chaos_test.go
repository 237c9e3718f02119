//go:build linux

package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/arena/arenatest"
	"github.com/succession-dev/succession/internal/rig/chaos"
	"github.com/succession-dev/succession/internal/rig/chaos/chaostest"
	"github.com/succession-dev/succession/internal/rig/evidence"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// TestChaos is one run on each coordinator, in which every kind of fault occurs: a commit needs the one on Consul, as
// the rehearsal does the same to ZooKeeper and etcd. A failure keeps all that the run has written.
//
//	SUCCESSION_TESTS=all go test ./internal/rig/chaos -run 'Chaos/etcd' -for 5m -seed 7
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, on := range arena.Coordinators() {
		t.Run(on, func(t *testing.T) {
			if on != "consul" {
				lane.All(t)
			}
			t.Parallel()
			chaostest.Run(t, on)
		})
	}
}

// A worker that does not ask whether it still leads is refused by the store, and
// caught by the checker.
func TestHeedless(t *testing.T) {
	lane.All(t)
	t.Parallel()
	o := options(t, "etcd", 15*time.Second).WithCut(3*time.Second, 10*time.Second)
	o.Heedless = true
	r := run(t, o)
	for _, v := range r.Violations {
		if v.Rule != evidence.Believed {
			t.Errorf("it is not the store alone that is misused: %v", v)
		}
	}
	refused := 0
	for _, writes := range r.Evidence.Stores {
		for _, w := range writes {
			if w.Refused > 0 {
				refused++
			}
		}
	}
	if len(r.Violations) == 0 || refused == 0 {
		t.Errorf("the store refused %d writes, and the checker found %d violations\n%s", refused, len(r.Violations), r)
	}
}

func options(t *testing.T, on string, length time.Duration) chaos.Options {
	return chaos.Options{Options: arenatest.Options(t, "chaos-"+on), On: on, For: length}
}

func run(t *testing.T, o chaos.Options) *chaos.Report {
	t.Helper()
	r, err := chaos.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A driver that reads what its URL names only once, or knows one address of each name, never finds the way back when
// that has changed. The run says so.
func TestForgetful(t *testing.T) {
	lane.All(t)
	t.Parallel()
	for on, kind := range map[string]string{"zookeeper": "rotate-authority", "consul": "rotate-secret", "etcd": "swap-address"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := options(t, on, 8*time.Second).With(kind, 3*time.Second)
			o.Forgetful = true
			r := run(t, o)
			noticed := func(v history.Violation) bool {
				return slices.Contains([]history.Rule{arena.Stuck, arena.Unclosed, "end"}, v.Rule)
			}
			for _, v := range r.Violations {
				if !noticed(v) && v.Rule != history.Vacancy {
					t.Errorf("more has been broken: %v", v)
				}
			}
			if !slices.ContainsFunc(append(r.Violations, r.NotJudged...), noticed) {
				t.Error("nobody has noticed")
			}
		})
	}
}
