package simulation_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/simulation"
	"pgregory.net/rapid"
)

var planFile = flag.String("plan", "", "file with a plan for TestPlan to run 20 times")

// TestPlan runs one plan again and again, and shows how often it fails.
func TestPlan(t *testing.T) {
	if *planFile == "" {
		*planFile = "testdata/plan.json" // one that holds, so that the way there is tested
	}
	text, err := os.ReadFile(*planFile)
	if err != nil {
		t.Fatal(err)
	}
	var p simulation.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("%s: %v", *planFile, err)
	}
	var failed *simulation.Report
	failures := 0
	for range 20 {
		if r := run(t, p); len(r.Violations) > 0 {
			failures++
			failed = r
		}
	}
	if failed != nil {
		dir, err := failed.Save()
		t.Fatalf("failed %d times of 20; the picture is in %s (%v)\n%s", failures, dir, err, failed)
	}
}

// A plan that is run again brings the same leaders with the same tokens, but for
// the jitter of package elect: without that a seed would be worth little.
func TestReplay(t *testing.T) {
	total, same := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		if total == 500 {
			return // two runs each, however many schedules are asked for
		}
		p := draw(rt, 3)
		total++
		if slices.Equal(wins(run(t, p)), wins(run(t, p))) {
			same++
		}
	})
	t.Logf("%d of %d plans brought the same leaders again", same, total)
	if same < total*9/10 {
		t.Errorf("only %d of %d plans brought the same leaders again", same, total)
	}
}

// wins lists who won with which token.
func wins(r *simulation.Report) []string {
	var out []string
	for _, e := range r.History.Events {
		if e.Kind == history.Won {
			out = append(out, fmt.Sprint(e.Election, " ", e.Candidate, " ", e.Token))
		}
	}
	slices.Sort(out)
	return out
}
