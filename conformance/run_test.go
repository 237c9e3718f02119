package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
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
		h.Only = []string{"G2.restart", "L1", "L2.left"}
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
		if r.Group() == "L1" || r.ID == "L2.left" || r.ID == "G2.restart" {
			want = append(want, r.ID)
		}
	}
	if !slices.Equal(got, want) || len(emitted) != len(want) {
		t.Errorf("results %q, want %q; %d emitted", got, want, len(emitted))
	}
	if emitted[0].ID != "G2.restart" {
		t.Errorf("%s came first; a rule that disturbs the coordinator must not run beside others", emitted[0].ID)
	}
}

func TestMissingFaultIsNeverAPass(t *testing.T) {
	only := func(h *conformance.Harness) {
		h.Only = []string{"L3.kill", "L3.leave"}
		h.Faults.Kill = nil
	}
	for _, tt := range []struct {
		name    string
		change  func(h *conformance.Harness)
		status  conformance.Status
		summary string
	}{
		{"not wired", func(*conformance.Harness) {}, conformance.NotWired,
			"memory: 1 passed, 0 failed, 0 waived, 0 impossible, 1 not wired (Kill)"},
		{"not wired, for a reason", func(h *conformance.Harness) {
			h.NotWired = map[conformance.Fault]string{conformance.Kill: "later"}
		}, conformance.NotWired, "memory: 1 passed, 0 failed, 0 waived, 0 impossible, 1 not wired (Kill)"},
		{"impossible", func(h *conformance.Harness) {
			h.Lacks = map[conformance.Fault]string{conformance.Kill: "it is one process"}
		}, conformance.Impossible, "memory: 1 passed, 0 failed, 0 waived, 1 impossible (no Kill: it is one process), 0 not wired"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report, _ := check(t, func(h *conformance.Harness) {
				only(h)
				tt.change(h)
			})
			if got := report.String(); got != tt.summary {
				t.Errorf("summary %q, want %q", got, tt.summary)
			}
			if err := report.Err(); err != nil {
				t.Errorf("Err is %v, and one rule has passed", err)
			}
			for _, res := range report.Results {
				if res.ID == "L3.kill" && (res.Status != tt.status || !slices.Equal(res.Missing, []conformance.Fault{conformance.Kill})) {
					t.Errorf("L3.kill is %v, without %v; want %s", res.Status, res.Missing, tt.status)
				}
			}
		})
	}
	report, _ := check(t, func(h *conformance.Harness) {
		only(h)
		h.Only = []string{"L3.kill"}
	})
	if report.Err() == nil {
		t.Error("a run in which nothing has passed has no error")
	}
}

// A complete harness must provide each fault, or say in Lacks why not.
func TestCompleteHarness(t *testing.T) {
	complete := func(h *conformance.Harness) { h.Only, h.Complete = []string{"L1.end"}, true }
	if report, _ := check(t, complete); report.Err() != nil {
		t.Errorf("refused: %v", report)
	}
	report, emitted := check(t, func(h *conformance.Harness) {
		complete(h)
		h.Faults.Kill = nil
		delete(h.Lacks, conformance.Clock)
	})
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), "nothing is said of Kill, Clock:") || len(emitted) > 0 {
		t.Errorf("Err is %v after %d rules; want one that names Kill and Clock", err, len(emitted))
	}
}

// The JSON of a report has the counts beside the results.
func TestReportAsJSON(t *testing.T) {
	report, _ := check(t, func(h *conformance.Harness) {
		h.Only = []string{"L3.kill", "L3.leave", "Fault.clock"}
		h.Faults.Kill = nil
	})
	b, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		conformance.Report
		Counts map[string]int
	}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"passed": 1, "failed": 0, "waived": 0, "impossible": 1, "not_wired": 1, "not_judged": 0}
	if !maps.Equal(got.Counts, want) || len(got.Results) != 3 {
		t.Errorf("got %s, want the counts %v of three rules", b, want)
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
		if got := report.String(); got != "memory: 0 passed, 0 failed, 1 waived (L6.ttl: known), 0 impossible, 0 not wired" {
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

// A rule that is unfit for the harness is impossible, for the reason that the harness gives.
func TestUnfit(t *testing.T) {
	report, emitted := check(t, func(h *conformance.Harness) {
		h.Only = []string{"L3.kill", "L3.leave"}
		h.Unfit = map[string]string{"L3.kill": "nobody could tell"}
	})
	if got := report.String(); got != "memory: 1 passed, 0 failed, 0 waived, 1 impossible (nobody could tell), 0 not wired" {
		t.Errorf("summary %q", got)
	}
	if res := report.Results[1]; res.ID != "L3.kill" || res.Reason != "nobody could tell" || res.Missing != nil || len(emitted) != 2 {
		t.Errorf("got %v, %d results emitted", res, len(emitted))
	}
}

func TestInvalidHarness(t *testing.T) {
	for name, change := range map[string]func(h *conformance.Harness){
		"no name":        func(h *conformance.Harness) { h.Name = "" },
		"no Open":        func(h *conformance.Harness) { h.Open = nil },
		"no TTL":         func(h *conformance.Harness) { h.TTL = 0 },
		"unknown rule":   func(h *conformance.Harness) { h.Only = []string{"L1.nothing"} },
		"unknown waiver": func(h *conformance.Harness) { h.Waive = map[string]string{"L1": "a group is no rule"} },
		"empty waiver":   func(h *conformance.Harness) { h.Waive = map[string]string{"L1.end": ""} },
		"unknown unfit":  func(h *conformance.Harness) { h.Unfit = map[string]string{"L1.nothing": "x"} },
		"empty unfit":    func(h *conformance.Harness) { h.Unfit = map[string]string{"L1.end": ""} },
		"unknown cost":   func(h *conformance.Harness) { h.Costs = map[string]int64{"L1.nothing": 1} },
		"no such cost":   func(h *conformance.Harness) { h.Costs = map[string]int64{"L1.end": 1} },
		"no cost":        func(h *conformance.Harness) { h.Costs = map[string]int64{"Lock.cost": 0} },
		"unknown fault":  func(h *conformance.Harness) { h.Lacks = map[conformance.Fault]string{"Fire": "x"} },
		"fault is there": func(h *conformance.Harness) { h.Lacks = map[conformance.Fault]string{conformance.Kill: "x"} },
		"two servers": func(h *conformance.Harness) {
			h.Lacks = nil
			h.Faults.Cluster = newCluster().harness(plain).Faults.Cluster
			h.Faults.Cluster.Servers = h.Faults.Cluster.Servers[:2]
		},
		"not wired is there":   func(h *conformance.Harness) { h.NotWired = map[conformance.Fault]string{conformance.Kill: "x"} },
		"not wired impossible": func(h *conformance.Harness) { h.NotWired = map[conformance.Fault]string{conformance.Clock: "x"} },
		"not wired ability":    func(h *conformance.Harness) { h.NotWired = map[conformance.Fault]string{conformance.Records: "x"} },
		"no reason given":      func(h *conformance.Harness) { h.Lacks = map[conformance.Fault]string{conformance.Deadlines: ""} },
	} {
		t.Run(name, func(t *testing.T) {
			report, emitted := check(t, change)
			if report.Err() == nil || len(emitted) > 0 {
				t.Errorf("accepted: %v, %d rules run", report, len(emitted))
			}
		})
	}
}

// TestFailureTellsAll checks what a failure shows: symptom, rule, ID and what each client did.
func TestFailureTellsAll(t *testing.T) {
	report, _ := check(t, func(h *conformance.Harness) {
		h.Only = []string{"L3.kill"}
		h.Faults.Kill = func(backend.Backend) {} // nothing happens, so Gone never wakes
	})
	got := report.Results[0].String()
	for _, want := range []string{
		"L3.kill Gone wakes when the client crashes: failed: b: Gone of n_0000000000(5) has not returned: not after 15s",
		"rule:    Gone of the heir",
		"RULES.md, L3.kill",
		" a     join ", " b     join ", " a     FAULT killed",
		" c     gone n_0000000000(",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
}

// TestWatchdog checks that a backend that hangs costs bounded time, and that the failure shows
// where it hangs.
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

// Without -v, go test in a package's folder ends with how much was exercised: a suite of which most is not wired
// must not look as one that has passed.
func TestLastLine(t *testing.T) {
	if os.Getenv("LAST_LINE") != "" {
		h := memoryHarness(plain)
		h.Only = []string{"L1.end", "L3.kill", "Fault.suspended", "Lock.try"}
		h.Faults.Kill = nil
		h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) {
			synctest.Test(t, func(t *testing.T) {
				h := memoryHarness(plain)
				h.Faults.Kill = nil
				rule(t, h)
			})
		}
		conformance.Run(t, h)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLastLine$")
	cmd.Env = append(os.Environ(), "LAST_LINE=yes")
	out, err := cmd.Output()
	if want := "conformance: memory: exercised 1 of 3 rules of suite driver and 1 of 1 rules of suite recipes; 1 impossible, 1 not wired\nPASS\n"; err != nil || string(out) != want {
		t.Errorf("go test prints %q, %v; want %q", out, err, want)
	}
}

// A suite in which too much is not judged fails, unless the test runner counts that for the whole run.
func TestRunOnABusyMachine(t *testing.T) {
	if os.Getenv("BUSY") != "" {
		h := memoryHarness(plain)
		h.Only = []string{"L3.leave"}
		h.OnMachine(true, true, true, true) // three trials, and the figures in the end
		h.Wrap = func(t *testing.T, rule func(*testing.T, conformance.Harness)) {
			synctest.Test(t, func(t *testing.T) { rule(t, memoryHarness(plain)) })
		}
		conformance.Run(t, h)
		return
	}
	for counts, passes := range map[bool]bool{false: false, true: true} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestRunOnABusyMachine$")
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SUCCESSION_LANE=") }), "BUSY=yes")
		if counts {
			cmd.Env = append(cmd.Env, "SUCCESSION_LANE=")
		}
		out, err := cmd.Output()
		if (err == nil) != passes || !strings.Contains(string(out), "1 not judged") {
			t.Errorf("the runner counts: %v; %v\n%s", counts, err, out)
		}
	}
}

// Rules that were exercised and did not pass are counted apart in that line, if there are any.
func TestLastLineCountsApart(t *testing.T) {
	r := &conformance.Report{Name: "x"}
	for i, s := range []conformance.Status{conformance.Passed, conformance.Waived, conformance.NotJudged, conformance.NotJudged, conformance.NotWired} {
		r.Results = append(r.Results, conformance.Result{ID: fmt.Sprint("L1.", i), Status: s})
	}
	if got, want := r.Exercised(), "conformance: x: exercised 4 of 5 rules of suite driver; 0 impossible, 1 not wired, 1 waived, 2 not judged"; got != want {
		t.Errorf("it is\n%s\nand not\n%s", got, want)
	}
}

// The closing lines of ./test count skipped rules by the beginning of their messages.
func TestSkipMessages(t *testing.T) {
	for status, want := range map[conformance.Status]string{
		conformance.Impossible: "conformance: impossible: L1.x a title (a reason)",
		conformance.NotWired:   "conformance: not wired: L1.x a title (a reason)",
		conformance.Waived:     "conformance: waived: L1.x a title: waived (a reason): ",
	} {
		res := conformance.Result{ID: "L1.x", Title: "a title", Status: status, Reason: "a reason"}
		if got := res.Skipped(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want it to begin with %q", status, got, want)
		}
	}
}

// A run can be restricted to a suite.
func TestOnlyOneSuite(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel() // nothing is exercised: only what the harness says is looked at
	for name, wrong := range map[string]bool{"driver": false, "recipes": false, "Lock": false, "locks": true} {
		h := memoryHarness(plain)
		h.Only = []string{name}
		if report := conformance.Check(over, h, nil); (report.Invalid != "") != wrong {
			t.Errorf("Only %q: %q", name, report.Invalid)
		}
	}
	of := make(map[conformance.Suite]int)
	for _, r := range conformance.Rules() {
		of[r.Suite()]++
	}
	if of[conformance.Driver] < 200 || of[conformance.Recipes] < 50 || len(of) != 2 {
		t.Errorf("rules of each suite: %v", of)
	}
}
