//go:build linux

// Package chaostest has the test of a chaos run, for each module with a coordinator.
package chaostest

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/arena/arenatest"
	"github.com/succession-dev/succession/internal/rig/chaos"
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
