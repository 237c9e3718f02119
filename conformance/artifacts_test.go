package conformance_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/internal/broken"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence/notes"
)

// TestReportFolder checks that histories and pictures are written for every rule that
// has candidates, whether it passes or fails, and for no other.
func TestReportFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	report, _ := check(t, func(h *conformance.Harness) {
		h.Only = []string{"Fault.cut", "G1.cut", "L1.end"}
		h.Report = dir
	})
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, id := range []string{"Fault.cut", "G1.cut"} {
		want = append(want, filepath.Join(dir, id+".jsonl"), filepath.Join(dir, id+".svg"))
	}
	got, _ := filepath.Glob(filepath.Join(dir, "*"))
	if !slices.Equal(got, want) {
		t.Fatalf("written are %q, want %q", got, want)
	}
	for _, res := range report.Results {
		if res.ID == "L1.end" && res.Files != nil || res.ID != "L1.end" && len(res.Files) != 2 || res.History != nil {
			t.Errorf("%s: files %q, history %q", res.ID, res.Files, res.History)
		}
	}
	h := readHistory(t, want[0])
	if len(h.Faults) != 1 || h.Faults[0].Kind != "cut" || h.Faults[0].To-h.Faults[0].From < 13*time.Second {
		t.Errorf("the faults are %+v", h.Faults)
	}
	for _, e := range h.Elections() {
		if n := len(h.Candidates(e)); n != 5 {
			t.Errorf("%s has %d candidates", e, n)
		}
		if n := len(h.Terms(e)); n < 10 {
			t.Errorf("%s has %d terms; each of five leads twice", e, n)
		}
	}
}

// The history of a failure, and its picture, show two leaders.
func TestReportOfAFailure(t *testing.T) {
	dir := t.TempDir()
	flaw := broken.Flaws[slices.IndexFunc(broken.Flaws, func(f broken.Flaw) bool { return f.Name == "unaware" })]
	var opened []*broken.Backend
	report, _ := check(t, func(h *conformance.Harness) {
		*h = memoryHarness(func(b backend.Backend) backend.Backend {
			opened = append(opened, broken.New(b, flaw))
			return opened[len(opened)-1]
		})
		h.Only = []string{"Fault.killed-candidate"}
		h.Report = dir
	})
	res := report.Results[0]
	if res.Status != conformance.Failed || len(res.Files) != 2 || !strings.Contains(res.String(), "history: "+dir) {
		t.Fatalf("got %v", res)
	}
	h := readHistory(t, res.Files[0])
	if lines := strings.Join(res.History, "\n") + "\n"; lines != write(t, h) {
		t.Errorf("the result has another history than its file:\n%s", lines)
	}
	svg, err := os.ReadFile(res.Files[1])
	if err != nil || !bytes.Contains(svg, []byte(">killed<")) || !bytes.Contains(svg, []byte(">overlap in ")) {
		t.Errorf("the picture does not show the fault, or not two leaders: %v", err)
	}
}

func readHistory(t *testing.T, file string) *history.History {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := notes.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func write(t *testing.T, h *history.History) string {
	t.Helper()
	var b strings.Builder
	if err := h.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
