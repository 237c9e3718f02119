package simulation_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/internal/rig/simulation"
	"pgregory.net/rapid"
)

var planFile = flag.String("plan", "", "file with a plan for TestPlan to run 20 times")

// TestPlan runs one plan again and again, and shows how often it fails; by default those
// that were found once and hold by now, and one that always has.
func TestPlan(t *testing.T) {
	files := []string{*planFile}
	if *planFile == "" {
		var err error
		if files, err = filepath.Glob("testdata/*.json"); err != nil || len(files) == 0 {
			t.Fatalf("the plans are %q (%v)", files, err)
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { testPlan(t, file) })
	}
}

func testPlan(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p simulation.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("%s: %v", file, err)
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

// A plan that is run again brings the same leaders with the same tokens: without that
// a seed would be worth nothing. Every fifth schedule is run twice.
func TestReplay(t *testing.T) {
	lane.Unraced(t)
	drawn, replayed := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		k := rapid.SampledFrom(kinds).Draw(rt, "kind")
		p := k.draw(rt)
		if drawn++; drawn%5 != 0 {
			return
		}
		replayed++
		first, again := wins(run(t, p)), wins(run(t, p))
		if !slices.Equal(first, again) {
			t.Errorf("this plan brought\n%s\nand when it was run again\n%s\n%s", strings.Join(first, "\n"), strings.Join(again, "\n"), p)
		}
	})
	t.Logf("%d plans brought the same leaders again", replayed)
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
