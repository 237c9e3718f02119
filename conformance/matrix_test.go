//go:build !race

package conformance_test

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/internal/broken"
)

var wholeMatrix = flag.Bool("whole-matrix", false, "TestMatrix: exercise every rule with every flaw")

// TestMatrix tests the suite itself: each flaw must fail the rules that are about what it
// breaks, and no unrelated rule. Of the unrelated rules it exercises every ninth, and others
// with the next flaw. With -whole-matrix it exercises all, and logs the matrix of rules
// and flaws. It is not built with the race detector, because it would take ten minutes instead
// of one. TestConformance is.
func TestMatrix(t *testing.T) {
	var mu sync.Mutex
	failed := make(map[string][]string) // the IDs of rules, by the name of the flaw
	t.Cleanup(func() {
		for _, r := range conformance.Rules() {
			by := slices.DeleteFunc(slices.Sorted(maps.Keys(failed)), func(flaw string) bool { return !slices.Contains(failed[flaw], r.ID) })
			t.Logf("%-24s %s", r.ID, strings.Join(by, ", "))
		}
	})
	for i, flaw := range broken.Flaws {
		must, related := strings.Fields(flaw.Must), strings.Fields(flaw.Must+" "+flaw.May)
		isRelated := func(r conformance.Rule) bool {
			return slices.Contains(related, r.ID) || slices.Contains(related, r.Group()) ||
				recipe(r) || r.Group() == "Choice" || // what breaks anything below may break it
				slices.Contains(r.Needs, conformance.HoldBack) || // it makes calls of all kinds
				r.ID == "G5.elections" || r.ID == "G5.handover" || r.ID == "G5.rest" // a session that is wrapped to have a flaw hides that it watches places
		}
		var rules []conformance.Rule
		for j, r := range conformance.Rules() {
			if *wholeMatrix || slices.Contains(must, r.ID) || !isRelated(r) && (i+j)%9 == 0 {
				rules = append(rules, r)
			}
		}
		t.Run(flaw.Name, func(t *testing.T) {
			t.Parallel()
			got := fails(t, flaw, rules)
			mu.Lock()
			failed[flaw.Name] = got
			mu.Unlock()
			for _, id := range must {
				if !slices.Contains(got, id) {
					t.Errorf("%s\n%s does not catch it; caught by %q", flaw.Breaks, id, got)
				}
			}
			for _, r := range rules {
				if slices.Contains(got, r.ID) && !isRelated(r) {
					t.Errorf("%s\nthe unrelated rule %s fails", flaw.Breaks, r.ID)
				}
			}
		})
	}
}

// recipe reports whether the rule is about a recipe that stands on elections.
func recipe(r conformance.Rule) bool {
	return slices.Contains([]string{"Lock", "Queue", "Barrier", "Group", "Value", "Task"}, r.Group())
}

// fails exercises the rules, each in a bubble of its own, on a backend or with an election that
// has the flaw. It returns the IDs of the rules that fail.
func fails(t *testing.T, flaw broken.Flaw, rules []conformance.Rule) (failed []string) {
	for _, r := range rules {
		if flaw.Sound() && (recipe(r) || strings.ContainsAny(r.ID[:1], "LPR") && r.Group() != "Run") {
			continue // the rule has no candidates of the suite, so a flawed election cannot fail it
		}
		synctest.Test(t, func(t *testing.T) {
			var opened []*broken.Backend
			k := newCluster()
			defer close(k.over)
			h := k.harness(func(b backend.Backend) backend.Backend {
				flawed := broken.New(b, flaw)
				flawed.Remove = func(m backend.Member) { k.c.Remove(m.Line, m.Key) }
				opened = append(opened, flawed)
				return flawed
			})
			// This is as on real servers, where a busy machine may take that long. A rule must
			// still fail if something happens only at the slow re-check.
			if !flaw.Short {
				h.Latency = ttl + time.Second
			}
			h.Costs = memoryCosts
			h.Only = []string{r.ID}
			h.SetElections(flaw.Election())
			conformance.Check(t.Context(), h, func(res conformance.Result) {
				if res.Status != conformance.Failed { // a rule that is impossible on memory does not count
					return
				}
				failed = append(failed, res.ID)
				if testing.Verbose() {
					t.Log(res)
				}
			})
			for _, b := range opened {
				b.Release()
			}
		})
	}
	return failed
}
