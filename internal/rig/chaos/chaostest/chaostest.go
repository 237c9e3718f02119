//go:build linux

// Package chaostest has the test of a chaos run, for each module with a coordinator.
package chaostest

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/arena/arenatest"
	"github.com/succession-dev/succession/internal/rig/chaos"
	"github.com/succession-dev/succession/internal/rig/drift"
	"github.com/succession-dev/succession/internal/rig/evidence"
)

// Run makes a run in which every kind of fault occurs that the coordinator can have. A failure keeps all that the run has written.
func Run(t *testing.T, on string) {
	o := chaos.Options{Options: arenatest.Options(t, "chaos-"+on), On: on, For: *arenatest.Length}
	if on == "local" {
		o.For /= 4
	}
	r, err := chaos.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
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
}

// A Drift is a coordinator, and the rates at which the clocks of candidates run; see [Drifts].
type Drift struct {
	On    string
	Rates []float64 // of the candidates' clocks, in turn
	// Goes is for how long a leader without answers goes on at most, and Stands for how long its session lasts at least, both from its
	// last heartbeat and by the machine's clock.
	Goes, Stands time.Duration
}

// Drifts has leaders cut off whose clocks run at other rates than those of others, so that nothing but these clocks tells them that
// their terms are over. Another leads before they are back. If they stop before their sessions end (Goes and Stands), no two lead at
// once. Otherwise two do, for no longer than docs/safety.md says (A1), and once for at least a quarter of that; and a store that
// fences, and the coordinator's guarded writes, refuse the first of them also then. The candidates are of the program of the package
// pkg, which package drift builds.
func Drifts(t *testing.T, pkg string, all ...Drift) {
	program := filepath.Join(t.TempDir(), "worker")
	if err := drift.Build(t.Context(), program, pkg); err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		t.Run(fmt.Sprintf("%s/%v", d.On, d.Rates), func(t *testing.T) {
			t.Parallel()
			d.run(t, program)
		})
	}
}

func (d Drift) run(t *testing.T, program string) {
	// By then no deadline on ZooKeeper counts from when its session was made.
	const settled = 15 * time.Second
	// Not each cut would show that the margin is missing: the last heartbeat may have been sent some time before it.
	within, most, cuts := d.Goes <= d.Stands, d.Goes-d.Stands, 4
	if within {
		cuts = 8
	}
	length := max(d.Goes, d.Stands) + 3*time.Second
	o := chaos.Options{Options: arenatest.Options(t, "drift-"+d.On), On: d.On}
	o.Worker[0] = program
	for i := range 5 {
		o.Rates = append(o.Rates, d.Rates[i%len(d.Rates)])
	}
	for i := range cuts {
		at := settled + time.Duration(i)*(length+2*d.Stands)
		o.Steps = append(o.Steps, arena.Step{At: at, For: length, Kind: "cut", Leader: true})
		o.For = at + length + 2*d.Stands
	}
	r, err := chaos.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	followed := 0
	for _, f := range r.Evidence.History.Faults {
		if replaced(r.Evidence.History, f) {
			followed++
		}
	}
	if followed < cuts/2 { // where the machine has too much to do, nobody may lead just when a leader is to be cut off
		t.Errorf("%d of %d cuts hit a leader whom another followed before they were over", followed, cuts)
	}
	var overlaps []time.Duration
	for _, v := range r.Violations {
		switch {
		case !within && v.Rule == history.Overlap:
			overlaps = append(overlaps, v.To-v.From)
			if v.To-v.From > most {
				t.Errorf("two led for %v, and at most %v is said", v.To-v.From, most)
			}
		case !within && v.Rule == evidence.Believed:
		default:
			t.Error(v)
		}
	}
	t.Logf("leaders without answers go on for %v, sessions end after %v, %d of %d were followed, overlaps: %v", d.Goes, d.Stands, followed, cuts, overlaps)
	if longest := slices.Max(append(overlaps, 0)); !within && longest < most/4 {
		t.Errorf("two have led at once for %v at most, although the clocks differ by so much that it could be %v", longest, most)
	}
}

// replaced reports whether a fault hit a leader, and another candidate won its election before the fault was over.
func replaced(h *history.History, f history.Fault) bool {
	for _, election := range h.Elections() {
		terms := h.Terms(election)
		led := slices.ContainsFunc(terms, func(t history.Term) bool {
			return t.Candidate == f.Target && t.From < f.From && t.LedUntil() > f.From
		})
		followed := slices.ContainsFunc(terms, func(t history.Term) bool {
			return t.Candidate != f.Target && f.From < t.From && t.From < f.To
		})
		if led && followed {
			return true
		}
	}
	return false
}
