package conformance_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/internal/broken"
)

// caught says which rules catch each flaw: those that must fail, as they are about
// what is broken, and those that may, as they build on it (rule IDs or groups). All
// other rules must pass.
var caught = map[string]struct{ must, may string }{
	"join twice":        {"L1.lost-answer L1.cancelled-lost G6.lost-answer", "G6.lost-resign"},
	"orphan":            {"L1.cancelled L1.cancelled-cut G6.cancelled G6.cut", "G6.first G9.cut-context"},
	"stale place":       {"L2.after-gone L2.churn", "G5"},
	"stale line":        {"L2.line", "L1.end L7.foreign L8.kept Pin.header G6.cut G10 Fault"},
	"zombie":            {"L2.left L2.removed Fault.leader-removed Fault.predecessor-removed Fault.dropped", "G7.removed G7.dropped G8.waiter-removed"},
	"behind the leader": {"L2.order G5.one", "L2.churn G5"},
	"herd":              {"L3.alone G5.one", "L2.churn"},
	"late watch":        {"L3.past L3.same-key", "L2 L3 L4.dropped Pin G2 G4 G8 G10 Run"},
	"nil on cancel":     {"L3.cancel L3.again G9.ended-context", "L3.many G9.cut-context"},
	"leave by key":      {"L4.same-key", ""},
	"next session":      {"L5.fails L5.queue", "L1.session-lost L5.close"},
	"silent end":        {"L5.done L5.close G9.members", "L4.ended L5 Pin.closed Pin.expired G9"},
	"late deadline":     {"L6.bound L6.cut L6.late L6.gate L6.ended L6.old-answer", "G7.margin"},
	"unaware":           {"L5.done L6.cut L6.late L6.gate G1.cut G1.late G1.kill G1.pause G7.cut Fault.cut Fault.mute Fault.deaf Fault.late Fault.severed Fault.hidden Fault.paused", "L4.ended L5 L6 Pin.closed Pin.expired G1 G7 G8 G9 Run.lost Fault"},
	"litter":            {"L7.folder", "L1.cancelled G1.restart G6.cancelled G6.first"}, // it makes Join two steps
	"forgiving":         {"L7.damaged", ""},
	"trim":              {"L8.intact", ""},
	"pin anyway":        {"Pin.version", ""},
	"read, then write":  {"Records.one-wins Records.counter", ""},
	"lossy watch":       {"Records.watch", "Records.watch-last"},
	"key token":         {"L7.fence G2.drop G2.fence-drop Fault.dropped", "G10"},
	"mortal fence":      {"G2.fence-drop", ""},
	"no guard":          {"Records.guard G3.resigned G3.removed G3.dropped", ""},
	"leak":              {"L3.again G9.goroutines G9.campaigns Fault.cut", "Fault"},
	"no context":        {"G9.ended-context G9.cut-context", ""},
	"stays":             {"G9.members G8.close Fault.cut", "G7.closed G9 Fault"},
}

// TestBroken tests the suite itself: each broken backend fails by the rules that
// are about what it breaks, and by no unrelated one.
func TestBroken(t *testing.T) {
	for _, flaw := range broken.Flaws {
		t.Run(flaw.Name, func(t *testing.T) {
			t.Parallel()
			failed := fails(t, flaw)
			want, known := caught[flaw.Name]
			if !known {
				t.Fatalf("%s\nno rule is said to catch it; it is caught by %q", flaw.Law, failed)
			}
			for _, id := range strings.Fields(want.must) {
				if !slices.Contains(failed, id) {
					t.Errorf("%s\n%s does not catch it; caught by %q", flaw.Law, id, failed)
				}
			}
			related := strings.Fields(want.must + " " + want.may)
			for _, id := range failed {
				group, _, _ := strings.Cut(id, ".")
				if !slices.Contains(related, id) && !slices.Contains(related, group) {
					t.Errorf("%s\nthe unrelated rule %s fails", flaw.Law, id)
				}
			}
		})
	}
}

// fails exercises every rule on a backend with the flaw, each in a bubble of its
// own, and returns the IDs of those that do not pass.
func fails(t *testing.T, flaw broken.Flaw) (failed []string) {
	for _, r := range conformance.Rules() {
		synctest.Test(t, func(t *testing.T) {
			var opened []*broken.Backend
			h := memoryHarness(func(b backend.Backend) backend.Backend {
				opened = append(opened, broken.New(b, flaw))
				return opened[len(opened)-1]
			})
			h.Only = []string{r.ID}
			conformance.Check(t.Context(), h, func(res conformance.Result) {
				if res.Status != conformance.Failed { // what memory cannot do is not at issue
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
