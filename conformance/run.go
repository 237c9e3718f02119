package conformance

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// Run exercises every rule as a subtest of t, named by the rule's ID, and logs a summary
// when all have run. Rules that disturb only their own clients run in parallel. The subtest
// of a rule that cannot be exercised, that fails and is waived, or that was not judged, is
// skipped. Its message begins with "conformance: " and the [Status], and the summary says why.
// Run fails if many rules were not judged; see [Report.Err].
//
// Without -v, Run prints a line that says how many rules were exercised, are impossible, are not
// wired, were waived and were not judged. go test shows this line last if it is run in the package's folder. If the package is named
// in go test's arguments and passes, go test shows nothing; so set [Harness] Complete there, and
// the run fails if a fault is left out.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if err := h.validate(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	report := &Report{Name: h.Name}
	folder := reportFolder(t, h)
	start := time.Now()
	stop := h.watch()
	t.Cleanup(func() { // a cleanup runs after the parallel subtests
		worst := h.calm.Since(start)
		stop()
		report.Took = time.Since(start)
		if err := report.tooBusy(); err != nil && !lane.Counts() {
			t.Error(err)
		}
		t.Logf("%v", report)
		var slow []string
		for _, res := range report.Slowest(5) {
			slow = append(slow, fmt.Sprintf("%s %v", res.ID, res.Took.Round(time.Millisecond)))
		}
		t.Logf("took %v; slowest: %s", report.Took.Round(time.Millisecond), strings.Join(slow, ", "))
		t.Logf("the machine at worst: %v", worst)
		if !testing.Verbose() {
			fmt.Println(report.exercised()) // nobody sees the log of a test that passes
		}
	})
	abilities, monitor := new(engine.Abilities), h.calm
	deadline, _ := t.Deadline() // rules may run in a bubble, which knows of none
	for _, r := range rules {
		if !h.selects(r) {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			if !r.Alone() {
				t.Parallel()
			}
			var res *Result
			rule := func(t *testing.T, h Harness) {
				if h.Report == "" {
					h.Report, h.reportsFailures = folder, folder == ""
				}
				h.abilities, h.calm = abilities, monitor
				h.deadline = deadline
				got := exercise(t.Context(), h, r)
				res = &got
			}
			if s, _ := h.Missing(r); h.Wrap != nil && s != Impossible {
				h.Wrap(t, rule)
			} else {
				rule(t, h)
			}
			if res == nil {
				t.Fatal("Harness.Wrap returned without having called the rule")
			}
			mu.Lock()
			report.add(*res)
			mu.Unlock()
			for _, figures := range res.repeated() {
				t.Logf("calm: repeated: %s: %s", res.ID, figures)
			}
			switch {
			case res.Status == Failed:
				t.Error(res)
			case res.Status == Passed:
				t.Log(res)
			default:
				t.Skip(res.skipped())
			}
		})
	}
}

// Check exercises every rule without package testing, for a command. It calls emit, if not
// nil, with each result as soon as it is known, one call at a time. It returns when all rules
// have run, or soon after ctx has ended. It does not call [Harness] Wrap.
func Check(ctx context.Context, h Harness, emit func(Result)) *Report {
	report := &Report{Name: h.Name}
	if err := h.validate(); err != nil {
		report.Invalid = err.Error()
		return report
	}
	h.abilities = new(engine.Abilities)
	defer h.watch()()
	var mu sync.Mutex
	one := func(r Rule) {
		if ctx.Err() != nil {
			return
		}
		res := exercise(ctx, h, r)
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil && res.Status == Failed {
			return // it may have failed because ctx ended
		}
		report.add(res)
		if emit != nil {
			emit(res)
		}
	}
	start := time.Now()
	var shared []Rule
	for _, r := range rules {
		switch {
		case !h.selects(r):
		case r.Alone():
			one(r)
		default:
			shared = append(shared, r)
		}
	}
	var running sync.WaitGroup
	free := make(chan struct{}, max(1, h.Parallel))
	for _, r := range shared {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			one(r)
		})
	}
	running.Wait()
	report.Took = time.Since(start)
	report.Interrupted = ctx.Err() != nil
	return report
}

// exercise runs the rule once, and applies the harness's waivers to the result.
func exercise(ctx context.Context, h Harness, r Rule) (res Result) {
	res = Result{ID: r.ID, Title: r.Title, Rule: r.Text}
	reason, waived := h.Waive[r.ID]
	unable := func(m missing) Result {
		res.Status, res.Reason, res.Missing, res.why = m.status, m.reason(), m.faults, m.why
		if waived {
			res.Status = Failed
			res.Symptom = "the rule is waived (" + reason + ") and cannot be exercised (" + res.Reason + "); remove the waiver"
		}
		return res
	}
	if m := h.missing(r); m.status == Impossible {
		return unable(m)
	}
	start := time.Now()
	out := engine.Exercise(ctx, h.coordinator(), r.rule)
	if out.Unable {
		lacks := h.abilities.Lacks()
		maps.Copy(lacks, h.Lacks)
		h.Lacks = lacks
		return unable(h.missing(r))
	}
	res.Took = time.Since(start)
	for _, reading := range out.Disturbed {
		res.Disturbed = append(res.Disturbed, reading.String())
	}
	defer func() { h.report(&res, out) }()
	switch {
	case out.NotJudged:
		res.Status = NotJudged
		res.Reason = "too busy each time: " + strings.Join(res.Disturbed, "; ")
	case out.Failure == "" && !waived:
		res.Status = Passed
	case out.Failure == "":
		res.Status = Failed
		res.Symptom = "the rule is waived (" + reason + ") and passes; remove the waiver"
	default:
		res.Status, res.Symptom, res.Timeline = Failed, out.Failure, out.Timeline
		if waived {
			res.Status, res.Reason = Waived, reason
		}
	}
	return res
}
