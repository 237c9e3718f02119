package conformance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/internal/broken"
)

// A trial on a busy machine is repeated, whether it has passed or failed, and what must never happen
// fails in any trial. Nothing is repeated on a calm machine.
func TestBusyMachine(t *testing.T) {
	const busy, calm = true, false
	tests := []struct {
		name    string
		machine []bool
		rule    string
		flaw    string // empty for none
		want    conformance.Status
	}{
		{"passes", []bool{calm}, "L3.leave", "", conformance.Passed},
		{"fails", []bool{calm}, "L3.leave", "polls", conformance.Failed},
		{"is repeated although it has passed", []bool{busy, calm}, "L3.leave", "", conformance.Passed},
		{"is repeated, and fails", []bool{busy, busy, calm}, "L3.leave", "polls", conformance.Failed},
		{"is not judged although it has passed", []bool{busy, busy, busy}, "L3.leave", "", conformance.NotJudged},
		{"is not judged although it has failed", []bool{busy, busy, busy}, "L3.leave", "polls", conformance.NotJudged},
		{"must never happen", []bool{busy}, "L8.intact", "trim", conformance.Failed},
		{"must never happen, and is found behind another failure", []bool{busy}, "G1.cut", "unaware", conformance.Failed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var script *conformance.Script
			report, _ := check(t, func(h *conformance.Harness) {
				if tt.flaw != "" {
					*h = memoryHarness(flawedBy(t, tt.flaw))
				}
				h.Only = []string{tt.rule}
				script = h.OnMachine(tt.machine...)
			})
			res := report.Results[0]
			if res.Status != tt.want || script.Trials != len(tt.machine) {
				t.Fatalf("%s after %d trials; want %s after %d:\n%v", res.Status, script.Trials, tt.want, len(tt.machine), res)
			}
			disturbed := len(tt.machine) - 1
			if tt.want == conformance.NotJudged {
				disturbed++
			}
			if len(res.Disturbed) != disturbed {
				t.Errorf("%d trials count as disturbed, want %d: %q", len(res.Disturbed), disturbed, res.Disturbed)
			}
			if (report.Err() == nil) != (tt.want == conformance.Passed) {
				t.Errorf("the run ends with %v", report.Err())
			}
		})
	}
}

// What is left of the time is not spent on repetitions that may not end in it.
func TestDeadline(t *testing.T) {
	var script *conformance.Script
	report, _ := check(t, func(h *conformance.Harness) {
		h.Only = []string{"L3.leave"}
		h.EndsBy(time.Now().Add(10 * time.Minute)) // a rule may take 8, if it hangs
		script = h.OnMachine(true, true, true)
	})
	if res := report.Results[0]; res.Status != conformance.NotJudged || script.Trials != 1 {
		t.Errorf("%s after %d trials; want that it is not judged after one: %v", res.Status, script.Trials, res)
	}
}

// Of many rules a few may be left unjudged, and of a few, one.
func TestTooBusy(t *testing.T) {
	few := &conformance.Report{Name: "few"}
	for i := range 40 {
		s := conformance.Passed
		if i < 2 {
			s = conformance.NotJudged
		}
		few.Results = append(few.Results, conformance.Result{ID: "X.y", Status: s})
	}
	if err := few.Err(); err != nil {
		t.Errorf("2 of 40 rules were not judged, and Err is %v", err)
	}
	few.Results[2].Status = conformance.NotJudged
	if err := few.Err(); err == nil || !strings.Contains(err.Error(), "too busy to judge 3 of 40 rules") {
		t.Errorf("3 of 40 rules were not judged, and Err is %v", err)
	}
	if s := few.String(); !strings.Contains(s, "3 not judged (X.y, X.y, X.y)") {
		t.Errorf("the summary is %q", s)
	}
	few.Results = few.Results[1:4] // of which two were not judged
	if err := few.Err(); err == nil || !strings.Contains(err.Error(), "too busy to judge 2 of 3 rules") {
		t.Errorf("2 of 3 rules were not judged, and Err is %v", err)
	}
	few.Results = few.Results[:1]
	if err := few.Err(); err == nil || !strings.Contains(err.Error(), "too busy to judge 1 of 1 rules") {
		t.Errorf("the only rule was not judged, and Err is %v", err)
	}
	few.Results = few.Results[:3]
	few.Results[0].Status = conformance.Passed
	if err := few.Err(); err != nil {
		t.Errorf("1 of 3 rules was not judged, and Err is %v", err)
	}
}

// flawedBy returns what breaks a backend in that way.
func flawedBy(t *testing.T, name string) func(backend.Backend) backend.Backend {
	for _, f := range broken.Flaws {
		if f.Name == name {
			return func(b backend.Backend) backend.Backend { return broken.New(b, f) }
		}
	}
	t.Fatalf("no flaw is called %q", name)
	return nil
}
