//go:build unix

package conformance_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/succession-dev/succession/conformance"
)

// If the process of Faults.Process is no candidate, the rule fails with the output of the process
// and does not hang. On a busy machine only a crash says something.
func TestProcessThatFails(t *testing.T) {
	for _, tt := range []struct {
		script, says string
		busy         conformance.Status
	}{
		{"echo no such coordinator >&2; exit 3", "exit status 3\nno such coordinator", conformance.NotJudged},
		{"exit 0", "has ended too early", conformance.NotJudged},
		{"echo hello; exec sleep 1000", "history: line 1", conformance.NotJudged},
		{"echo panic: oh >&2; exit 2", "exit status 2\npanic: oh", conformance.Failed},
	} {
		h := memoryHarness(plain)
		h.Only = []string{"Fault.killed-process"}
		delete(h.Lacks, conformance.Process)
		h.Faults.Process = func(string, string) *exec.Cmd { return exec.Command("sh", "-c", tt.script) }
		h.OnMachine(false)
		report := conformance.Check(t.Context(), h, nil)
		if got := report.Results[0]; got.Status != conformance.Failed || !strings.Contains(got.Symptom, tt.says) {
			t.Errorf("%s: got %v, want %q", tt.script, got, tt.says)
		}
		h.OnMachine(true, true, true)
		if got := conformance.Check(t.Context(), h, nil).Results[0]; got.Status != tt.busy {
			t.Errorf("%s, on a busy machine: got %v, want that it is %s", tt.script, got, tt.busy)
		}
	}
}
