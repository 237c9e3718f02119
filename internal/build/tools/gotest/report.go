package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// An event is one line of go test -json (go doc test2json, go help buildjson).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string // empty in events of a whole package
	Elapsed    float64
	Output     string
	// FailedBuild is the import path of what a package does not build without.
	FailedBuild string
}

// A report counts tests and shows those that fail. Each test and each subtest counts
// as one; a package that fails without a failed test, because it does not build or
// its process dies, counts as one failed test.
type report struct {
	out      *console
	status   func() string // how far the run is; may be nil
	failures *atomic.Int64 // of the whole run, so far
	mu       sync.Mutex    // of merge

	passed, failed int
	before         int // programs and checks that have passed in an earlier run, and not in this one

	said  []string // of each failed test, what it has said, in short
	times times

	skips skips
	calm  calm

	running map[string]map[string]bool // by package, the tests that have not ended
	output  map[string]*strings.Builder
	shown   map[string]bool // tests that are known to have failed
	bad     map[string]int  // failed tests by package
	ran     map[string]int  // tests by package
}

func newReport(out *console) *report {
	return &report{
		out:      out,
		failures: new(atomic.Int64),
		running:  make(map[string]map[string]bool),
		output:   make(map[string]*strings.Builder),
		shown:    make(map[string]bool),
		bad:      make(map[string]int),
		ran:      make(map[string]int),
	}
}

// child returns a report for a part of the run, to be merged.
func (r *report) child() *report {
	c := newReport(r.out)
	c.status, c.failures = r.status, r.failures
	return c
}

// merge takes over what another report has counted and said. It may be called from several
// goroutines at once.
func (r *report) merge(o *report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passed, r.failed, r.before = r.passed+o.passed, r.failed+o.failed, r.before+o.before
	r.said = append(r.said, o.said...)
	r.skips.merge(o.skips)
	r.calm.merge(o.calm)
	r.times.merge(o.times)
}

// add takes the next event.
func (r *report) add(e event) {
	if e.Package == "" {
		e.Package = e.ImportPath
	}
	switch {
	case e.Action == "output" || e.Action == "build-output":
		r.keep(e)
		// The event that ends a test may come only with the next that another test prints.
		if e.Test != "" && strings.HasPrefix(strings.TrimLeft(e.Output, " "), "--- FAIL: "+e.Test+" (") {
			r.failTest(e)
		}
	case e.Action == "build-fail":
		r.said = append(r.said, "FAIL  "+e.Package+" does not build\n"+r.beginning(e)) // counted with the packages that it stops
		r.show("", e)
	case e.Test == "":
		r.endPackage(e)
	case e.Action == "run":
		if r.running[e.Package] == nil {
			r.running[e.Package] = make(map[string]bool)
		}
		r.running[e.Package][e.Test] = true
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		r.endTest(e)
	}
}

func (r *report) endTest(e event) {
	delete(r.running[e.Package], e.Test)
	r.ran[e.Package]++
	r.times.add(e)
	switch e.Action {
	case "pass":
		r.passed++
		delete(r.output, key(e))
	case "fail":
		r.failTest(e)
		r.show("", e)
	case "skip":
		output := ""
		if b := r.output[key(e)]; b != nil {
			output = b.String()
		}
		if r.skips.add(output) {
			fmt.Fprintf(r.out, "skip  %s %s\n%s", e.Package, e.Test, r.excerpt(e)) // with its reason
		}
		delete(r.output, key(e))
	}
}

// failTest counts and shows a test that has failed, once.
func (r *report) failTest(e event) {
	if r.shown[key(e)] {
		return
	}
	r.shown[key(e)] = true
	r.fail()
	r.bad[e.Package]++
	head := "FAIL  " + e.Package + " " + e.Test + "\n"
	r.said = append(r.said, head+r.excerpt(e))
	r.show(head, e)
}

func (r *report) endPackage(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(r.out, "ok    %s  %d tests, %.1fs%s\n", e.Package, r.ran[e.Package], e.Elapsed, r.far())
	case "skip":
		fmt.Fprintf(r.out, "-     %s  no tests%s\n", e.Package, r.far())
	case "fail":
		// A process that died took with it the tests that were running.
		for test := range r.running[e.Package] {
			r.endTest(event{Action: "fail", Package: e.Package, Test: test})
		}
		if r.bad[e.Package] == 0 {
			r.fail()
			if e.FailedBuild != "" {
				r.said = append(r.said, "FAIL  "+e.Package+": not tested, as "+e.FailedBuild+" does not build\n")
			} else {
				r.said = append(r.said, "FAIL  "+e.Package+", and none of its tests\n"+r.beginning(e))
			}
		}
		r.show("", e)
		fmt.Fprintf(r.out, "FAIL  %s  %d of %d tests, %.1fs%s\n", e.Package, r.bad[e.Package], r.ran[e.Package], e.Elapsed, r.far())
	default:
		return // start, bench
	}
	r.times.add(e)
	delete(r.output, key(e))
}

// problem reports and counts a failure that no test stands for.
func (r *report) problem(text string) {
	r.fail()
	r.said = append(r.said, "FAIL  "+text+"\n")
	fmt.Fprintln(r.out, "FAIL ", text)
}

// say reports and counts a failure in one line, and again at the end.
func (r *report) say(line string) {
	r.fail()
	r.said = append(r.said, line+"\n")
	fmt.Fprintln(r.out, line+r.far())
}

func (r *report) fail() {
	r.failed++
	r.failures.Add(1)
}

// far says behind the end of a package how far the run is.
func (r *report) far() string {
	if r.status == nil {
		return ""
	}
	return "   [" + r.status() + "]"
}

// excerpt returns the first lines that the test has logged, each in short.
func (r *report) excerpt(e event) (text string) {
	b := r.output[key(e)]
	if b == nil {
		return ""
	}
	const lines, length = 5, 300
	for _, line := range logged.FindAllString(b.String(), lines) {
		text += line[:min(len(line), length)] + "\n"
	}
	return text
}

// beginning returns the first lines of what a package has printed of itself, or its compiler, each in short.
func (r *report) beginning(e event) (text string) {
	b := r.output[key(e)]
	if b == nil {
		return ""
	}
	const lines, length = 5, 300
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSpace(line); line != "" && line != "PASS" && !strings.HasPrefix(line, "# ") && strings.Count(text, "\n") < lines {
			text += "    " + line[:min(len(line), length)] + "\n"
		}
	}
	return text
}

// logged is a line that a test has logged, or that its process has died with.
var logged = regexp.MustCompile(`(?m)^(    +\S+\.go:\d+: |panic: |fatal error: ).*`)

// close prints once more which tests have failed, and why, then why tests were skipped, and the closing line. It
// reports whether all is well.
func (r *report) close() bool {
	if r.passed+r.failed+r.before == 0 {
		r.problem("nothing was tested")
	}
	if tests := r.passed + r.failed; r.calm.tooBusy(tests) {
		r.problem(fmt.Sprintf("%d rules about time or cost could not be judged, and %d may be, because the machine was too busy; run it again with less beside it",
			len(r.calm.notJudged), mayNotBeJudged(tests)))
	}
	r.times.print(r.out)
	if len(r.said) > 0 {
		fmt.Fprintf(r.out, "\n== what has failed\n%s", strings.Join(r.said, ""))
	}
	r.calm.print(r.out)
	r.skips.print(r.out)
	if r.before > 0 {
		fmt.Fprintf(r.out, "not run again: %d test programs and checks that have passed before, and were to do the same again\n", r.before)
	}
	fmt.Fprintf(r.out, "tests: %d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skips.count())
	return r.failed == 0
}

// keep stores output until it is known whether anybody wants to see it.
func (r *report) keep(e event) {
	k := key(e)
	if r.output[k] == nil {
		r.output[k] = new(strings.Builder)
	}
	r.output[k].WriteString(e.Output)
	r.calm.hear(e)
}

// show prints what was kept of the test or package, below a line that names it.
func (r *report) show(head string, e event) {
	k := key(e)
	if b := r.output[k]; b != nil {
		head += b.String()
		delete(r.output, k)
	}
	io.WriteString(r.out, head)
}

func key(e event) string { return e.Package + "\x00" + e.Test }
