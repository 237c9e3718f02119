package target

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/conformance"
	_ "github.com/succession-dev/succession/etcd"
)

// The page about checking a coordinator says how many rules are checked on a cluster in use.
func TestDocsCountTheRules(t *testing.T) {
	const url = "etcd://h1:2379/app?ttl=2s"
	page, err := os.ReadFile("../../../../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	target, err := newTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	target.ttl, target.options.Faults = 2*time.Second, Faults
	target.operator = struct{ coordinator.Operator }{} // it is not asked
	h := target.Harness()
	rules, counts := conformance.Rules(), make(map[conformance.Status]int)
	for _, r := range rules {
		status, _ := h.Missing(r)
		counts[status]++
	}
	able, notWired := counts[""], counts[conformance.NotWired]
	if able+notWired != len(rules) {
		t.Fatalf("the rules are %v", counts)
	}
	for _, line := range []string{
		fmt.Sprintf("    succession: exercising %d of %d rules, with a session time of 2s: about ", able, len(rules)),
		fmt.Sprintf("    %s: %d passed, 0 failed, 0 waived, 0 impossible, %d not wired, in ", url, able, notWired),
	} {
		if !strings.Contains(string(page), line) {
			t.Errorf("docs/conformance.md lacks the line\n%s...", line)
		}
	}
}
