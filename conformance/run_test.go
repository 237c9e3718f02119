package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
)

func plain(b backend.Backend) backend.Backend { return b }

// check runs Check on package memory in a bubble, after change.
func check(t *testing.T, change func(h *conformance.Harness)) (report *conformance.Report, emitted []conformance.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := memoryHarness(plain)
		change(&h)
		report = conformance.Check(t.Context(), h, func(r conformance.Result) { emitted = append(emitted, r) })
	})
	return report, emitted
}

func TestCheckReportsInOrder(t *testing.T) {
	report, emitted := check(t, func(h *conformance.Harness) {
		h.Only = []string{"G8.restart", "L1", "L2.left"}
		h.Parallel = 3
	})
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, r := range report.Results {
		got = append(got, r.ID)
	}
	for _, r := range conformance.Rules() {
		if r.Group() == "L1" || r.ID == "L2.left" || r.ID == "G8.restart" {
			want = append(want, r.ID)
		}
	}
	if !slices.Equal(got, want) || len(emitted) != len(want) {
		t.Errorf("results %q, want %q; %d emitted", got, want, len(emitted))
	}
	if emitted[0].ID != "G8.restart" {
		t.Errorf("%s came first; a rule that disturbs the coordinator must not run beside others", emitted[0].ID)
	}
}

func TestMissingFaultIsNeverAPass(t *testing.T) {
	only := func(h *conformance.Harness) {
		h.Only = []string{"L3.kill", "L3.leave"}
		h.Faults.Kill = nil
	}
	report, _ := check(t, only)
	if got := report.String(); got != "memory: 1 passed, 0 failed, 0 waived, 1 not exercised (no Kill)" {
		t.Errorf("summary %q", got)
	}
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), "L3.kill") {
		t.Errorf("Err is %v; want one that names the rule", err)
	}
	report, _ = check(t, func(h *conformance.Harness) {
		only(h)
		h.Lacks = map[conformance.Fault]string{conformance.Kill: "it is one process"}
	})
	if got := report.String(); got != "memory: 1 passed, 0 failed, 0 waived, 1 not exercised (no Kill: it is one process)" {
		t.Errorf("summary %q", got)
	}
	if err := report.Err(); err != nil {
		t.Errorf("Err is %v with a declared reason", err)
	}
}

func TestWaiver(t *testing.T) {
	waive := func(h *conformance.Harness) {
		h.Only = []string{"L6.ttl"}
		h.Waive = map[string]string{"L6.ttl": "known"}
	}
	t.Run("needed", func(t *testing.T) {
		report, _ := check(t, func(h *conformance.Harness) {
			waive(h)
			h.TTL = time.Second // shorter than what the coordinator grants
		})
		if got := report.String(); got != "memory: 0 passed, 0 failed, 1 waived (L6.ttl: known), 0 not exercised" {
			t.Errorf("summary %q", got)
		}
		if r := report.Results[0]; r.Symptom == "" || len(r.Timeline) == 0 {
			t.Errorf("a waived rule does not say what is wrong: %v", r)
		}
	})
	t.Run("not needed", func(t *testing.T) {
		report, _ := check(t, waive)
		if report.Err() == nil || !strings.Contains(report.Results[0].Symptom, "remove the waiver") {
			t.Errorf("a waiver of a rule that passes is accepted: %v", report.Results[0])
		}
	})
	t.Run("not exercised", func(t *testing.T) {
		report, _ := check(t, func(h *conformance.Harness) {
			h.Only = []string{"L3.kill"}
			h.Waive = map[string]string{"L3.kill": "known"}
			h.Faults.Kill = nil
			h.Lacks = map[conformance.Fault]string{conformance.Kill: "it is one process"}
		})
		if report.Err() == nil {
			t.Errorf("a waiver of a rule that was not exercised is accepted: %v", report.Results[0])
		}
	})
}

func TestInvalidHarness(t *testing.T) {
	for name, change := range map[string]func(h *conformance.Harness){
		"no name":        func(h *conformance.Harness) { h.Name = "" },
		"no Open":        func(h *conformance.Harness) { h.Open = nil },
		"no TTL":         func(h *conformance.Harness) { h.TTL = 0 },
		"unknown rule":   func(h *conformance.Harness) { h.Only = []string{"L1.nothing"} },
		"unknown waiver": func(h *conformance.Harness) { h.Waive = map[string]string{"L1": "a group is no rule"} },
		"empty waiver":   func(h *conformance.Harness) { h.Waive = map[string]string{"L1.end": ""} },
		"unknown fault":  func(h *conformance.Harness) { h.Lacks = map[conformance.Fault]string{"Fire": "x"} },
		"fault is there": func(h *conformance.Harness) { h.Lacks = map[conformance.Fault]string{conformance.Kill: "x"} },
		"two servers": func(h *conformance.Harness) {
			h.Lacks = nil
			h.Faults.Cluster = newCluster().harness(plain).Faults.Cluster
			h.Faults.Cluster.Servers = h.Faults.Cluster.Servers[:2]
		},
		"no reason given": func(h *conformance.Harness) { h.Lacks = map[conformance.Fault]string{conformance.Deadlines: ""} },
	} {
		t.Run(name, func(t *testing.T) {
			report, emitted := check(t, change)
			if report.Err() == nil || len(emitted) > 0 {
				t.Errorf("accepted: %v, %d rules run", report, len(emitted))
			}
		})
	}
}

// TestFailureTellsAll says what a failure shows: symptom, rule, ID and what each
// client did.
func TestFailureTellsAll(t *testing.T) {
	report, _ := check(t, func(h *conformance.Harness) {
		h.Only = []string{"L3.kill"}
		h.Faults.Kill = func(backend.Backend) {} // nothing happens, so Gone never wakes
	})
	got := report.Results[0].String()
	for _, want := range []string{
		"L3.kill Gone wakes when the client crashes: failed",
		"symptom: Gone has not returned after the crash: not after 15s",
		"rule:    Gone of the heir",
		"RULES.md, L3.kill",
		" a     join ", " b     join ", " a     FAULT killed",
		" c     gone n_0000000000(1) has not returned",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
}

// TestWatchdog says that a backend that hangs costs bounded time and shows where.
func TestWatchdog(t *testing.T) {
	report, _ := check(t, func(h *conformance.Harness) {
		h.Only = []string{"G2.restart"}
		h.Faults.Restart = func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
	})
	got := report.Results[0]
	if got.Status != conformance.Failed || !strings.Contains(got.Symptom, "was not done after") || !strings.Contains(got.Symptom, "TestWatchdog") {
		t.Errorf("want a failure that shows the goroutine of TestWatchdog, got %v", got)
	}
}

func TestOpenFails(t *testing.T) {
	report, _ := check(t, func(h *conformance.Harness) {
		h.Only = []string{"L1.end"}
		h.Open = func(context.Context) (backend.Backend, error) { return nil, errors.New("connection refused") }
	})
	if got := report.Results[0]; got.Status != conformance.Failed || !strings.Contains(got.Symptom, "connection refused") {
		t.Errorf("got %v", got)
	}
}

func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		report := conformance.Check(ctx, memoryHarness(plain), nil)
		if !report.Interrupted || report.Err() == nil || report.Count(conformance.Failed) > 0 {
			t.Errorf("got %v, %v", report, report.Err())
		}
	})
}
