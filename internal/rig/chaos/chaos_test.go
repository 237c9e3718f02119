//go:build linux

package chaos_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/chaos"
)

// TestChaos is one run on each coordinator, in which every kind of fault occurs. A failure
// keeps all that the run has written.
//
//	go test ./internal/rig/chaos -run 'Chaos/etcd' -for 5m -seed 7
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, on := range chaos.Coordinators() {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			o := options(t, on, *length)
			if on == "local" {
				o.For /= 4
			}
			r := run(t, o)
			t.Logf("\n%s", r)
			if len(r.Violations) > 0 {
				t.Errorf("guarantees were broken; see %s", o.Dir)
			}
			if len(r.Missing) > 0 {
				t.Errorf("of the faults these did not occur: %v", r.Missing)
			}
			if len(r.Evidence.Ops) == 0 {
				t.Error("nothing was written")
			}
		})
	}
}

// A worker that does not ask whether it still leads is refused by the store, and
// caught by the checker.
func TestHeedless(t *testing.T) {
	t.Parallel()
	o := options(t, "etcd", 15*time.Second).WithCut(3*time.Second, 10*time.Second)
	o.Heedless = true
	r := run(t, o)
	for _, v := range r.Violations {
		if v.Rule != chaos.Unfenced {
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
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := chaos.Options{On: on, For: length, Seed: *seed, Worker: []string{exe, "worker"}, Env: env, Out: t.Output()}
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1_000_000)
	}
	if o.Dir, err = os.MkdirTemp("", "chaos-"+on+"-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			if err := os.RemoveAll(o.Dir); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}

func run(t *testing.T, o chaos.Options) *chaos.Report {
	t.Helper()
	r, err := chaos.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rules returns which rules were broken, each once.
func rules(found []history.Violation) []history.Rule {
	var out []history.Rule
	for _, v := range found {
		if !slices.Contains(out, v.Rule) {
			out = append(out, v.Rule)
		}
	}
	slices.Sort(out)
	return out
}
