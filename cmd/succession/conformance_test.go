//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/rig/evidence/notes"
)

func TestConformanceTable(t *testing.T) {
	url := localURL(t)
	code, stdout, stderr := here("--url", url, "conformance", "--prefix", "suite", "--faults", "remove", "--rule", "G4.order", "--rule", "L2.removed", "--rule", "L3.dropped", "--rule", "L3.cut")
	if !judged(t, stdout) {
		return
	}
	if code != 0 {
		t.Fatalf("exit code %d, standard error %s", code, stderr)
	}
	for _, want := range []string{
		"G4.order    leadership goes down the line                  passed  ",
		"L2.removed  who was removed is not in line                 passed  ",
		"L3.dropped  Gone wakes when an operator deletes the election  not wired (no Drop: only with --faults drop)\n",
		"L3.cut      Gone wakes when the client is cut off             impossible (no Cut: there is no server)\n",
		"\n" + url + ": 2 passed, 0 failed, 0 waived, 1 impossible, 1 not wired, in ",
	} {
		if !strings.Contains(columns(stdout), columns(want)) {
			t.Errorf("the output lacks %q:\n%s", want, stdout)
		}
	}
	const says = "succession: exercising 2 of 4 rules, with sessions without a time: about 1s\n" +
		"succession: all names begin with suite, and are deleted afterwards\n"
	if stderr != says {
		t.Errorf("standard error %q, want %q", stderr, says)
	}
	if left, err := os.Stat(filepath.Join(strings.TrimPrefix(url, "local:"), "suite")); err == nil {
		t.Errorf("the suite has left %s", left.Name())
	}
}

// Histories fit an order, and nothing is left of them.
func TestConformanceHistories(t *testing.T) {
	t.Parallel()
	url := localURL(t)
	code, stdout, stderr := here("--url", url, "conformance", "--prefix", "suite", "--faults", "all", "--histories", "3s")
	fits := regexp.MustCompile(`^records: \d+ operations, \d+ of them without an answer: fit an order
items: \d+ operations, \d+ of them without an answer: fit an order
locks: \d+ operations, \d+ of them without an answer: fit an order
$`)
	if code != 0 || !fits.MatchString(stdout) {
		t.Errorf("exit code %d, output\n%s\nstandard error\n%s", code, stdout, stderr)
	}
	for _, says := range []string{"recording histories, with sessions without a time: about 3s\n", "succession: seed ", ": close\n"} {
		if !strings.Contains(stderr, says) {
			t.Errorf("standard error lacks %q:\n%s", says, stderr)
		}
	}
	if left, err := os.Stat(filepath.Join(strings.TrimPrefix(url, "local:"), "suite")); err == nil {
		t.Errorf("the suite has left %s", left.Name())
	}
	code, stdout, _ = here("--url", url, "conformance", "--histories", "3s", "-o", "json")
	var last struct {
		History string
		Calls   int
		Fits    bool
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || code != 0 || len(lines) != 3 || last.History != "locks" || last.Calls == 0 || !last.Fits {
		t.Errorf("exit code %d, %+v, %v, output\n%s", code, last, err, stdout)
	}
}

// columns makes runs of blanks one.
func columns(s string) string {
	for strings.Contains(s, "   ") {
		s = strings.ReplaceAll(s, "   ", "  ")
	}
	return s
}

// Nothing is as fast as it should be here, which a failure must show.
func TestConformanceFails(t *testing.T) {
	code, stdout, _ := here("--url", localURL(t), "conformance", "--latency", "1ns", "--rule", "L3.leave")
	if !judged(t, stdout) {
		return
	}
	if code != ui.ExitNonconforming {
		t.Errorf("exit code %d, want %d", code, ui.ExitNonconforming)
	}
	for _, want := range []string{"FAILED", ": failed: ", "rule:    ", "0 passed, 1 failed, 0 waived, 0 impossible, 0 not wired"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output lacks %q:\n%s", want, stdout)
		}
	}
}

// That a rule has failed counts more than that the report could not be written, and both are told.
func TestConformanceFailsWithoutReport(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "report.json", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := here("--url", localURL(t), "conformance", "--latency", "1ns", "--rule", "L3.leave", "--report", dir)
	if judged(t, stdout) && (code != ui.ExitNonconforming || !strings.Contains(stderr, "succession: --report: it is in ")) {
		t.Errorf("exit code %d, want %d; standard error\n%s", code, ui.ExitNonconforming, stderr)
	}
	if whole, err := os.ReadFile(filepath.Join(dir, "report.json.new")); err != nil || !json.Valid(whole) {
		t.Errorf("the report is %q, %v", whole, err)
	}
}

// An earlier report stays until there is another.
func TestConformanceKeepsReport(t *testing.T) {
	dir := t.TempDir()
	earlier := filepath.Join(dir, "report.json")
	if err := os.WriteFile(earlier, []byte("earlier"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := here("--url", "local:/dev/null/nowhere", "conformance", "--rule", "L3.leave", "--report", dir); code != ui.ExitFailed {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	all, err := os.ReadDir(dir)
	if now, _ := os.ReadFile(earlier); string(now) != "earlier" || len(all) != 1 {
		t.Errorf("the folder has %v, %v, and the report is %q", all, err, now)
	}
}

func TestConformanceRefuses(t *testing.T) {
	url := localURL(t)
	for _, tt := range []struct{ args, says string }{
		{"--rule L0", `--rule "L0" matches no rule`},
		{"--rule [", `syntax error`},
		{"--faults fire", `--faults "fire": known are cut, mute, deafen, sever, hide, kill, bytes, process, remove, drop and all`},
		{"--faults cut", "the fault cut is not possible: there is no server"},
		{"--rule L3.cut", "none of the rules that were asked for can be exercised: no Cut"},
		{"--prefix /a", "begins with a slash"},
		{"--parallel 0", "--parallel 0"},
		{"--latency -1s", "must not be negative"},
		{"--histories -1s", "must not be negative"},
		{"--histories 1s --rule G8", "if any flags in the group [histories rule] are set none of the others can be"},
		{"--report /dev/null/r", "--report: "},
		{"--url memory:x", "nobody could clear up after the suite: the driver of memory brings no operator"},
		{"all", "takes no arguments"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			code, stdout, stderr := here(append([]string{"--url", url, "conformance"}, strings.Fields(tt.args)...)...)
			if code != ui.ExitFailed || stdout != "" || !strings.Contains(stderr, tt.says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, output %q, standard error %q; want %q in it", code, stdout, stderr, tt.says)
			}
		})
	}
}

func TestConformanceInterrupted(t *testing.T) {
	url := localURL(t)
	p := start(t, "--url", url, "conformance", "--prefix", "suite", "--rule", "G9.never-nil", "--rule", "Records.watch")
	if line, ok := p.next(); !ok || !strings.HasPrefix(line, "G9.never-nil") {
		t.Fatalf("first line %q", line)
	}
	p.signal(15)
	p.line("")
	if line, _ := p.next(); judged(t, line) && !strings.Contains(line, "1 passed, 0 failed") || !strings.HasSuffix(line, ", interrupted") {
		t.Errorf("last line %q", line)
	}
	p.exits(143)
	if _, err := os.Stat(filepath.Join(strings.TrimPrefix(url, "local:"), "suite")); err == nil {
		t.Error("an interrupted suite has left something")
	}
}

func TestConformanceList(t *testing.T) {
	code, stdout, _ := here("--url", "nosuch:x", "conformance", "--list")
	if code != 0 || strings.Count(stdout, "\n") != len(conformance.Rules()) || !strings.Contains(stdout, "Pause, Deadlines\n") {
		t.Errorf("exit code %d, output\n%s", code, stdout)
	}
	checkOutput(t, []string{"conformance", "--list", "--rule", "G8.[rx]e[sm]*"}, 0, "G8.resign   a resignation hands over at once\n"+
		"G8.removed  a removal hands over at once      Remove\n")
}

// A candidate in a process of its own is this command, and what it noted stands beside
// what the others did.
func TestConformanceReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	cmd := command("--url", localURL(t), "conformance", "--faults", "process", "--rule", "Fault.killed-process", "--rule", "L1.end", "--report", dir)
	out, err := cmd.CombinedOutput()
	if !judged(t, string(out)) {
		return
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report conformance.Report
	if err := json.Unmarshal(b, &report); err != nil {
		t.Fatal(err)
	}
	if report.Count(conformance.Passed) != 2 || report.Err() != nil {
		t.Errorf("the report is %v", &report)
	}
	f, err := os.Open(filepath.Join(dir, "Fault.killed-process.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := notes.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range h.Elections() {
		if got := h.Candidates(e); !slices.Contains(got, "p") || len(got) != 5 {
			t.Errorf("the candidates are %q, want the process p among five", got)
		}
	}
	if len(h.Faults) != 1 || h.Faults[0].Kind != "killed" || h.Faults[0].Target != "p" {
		t.Errorf("the faults are %+v", h.Faults)
	}
	if _, err := os.Stat(filepath.Join(dir, "Fault.killed-process.svg")); err != nil {
		t.Error(err)
	}
}

// The candidate's command ends with its input, and says what it does not understand.
func TestStand(t *testing.T) {
	url := localURL(t)
	for _, tt := range []struct {
		in, says string
		code     int
	}{
		{"", "", 0},
		{"resign\n", "", 0},
		{"abdicate\n", `"abdicate" is no command`, ui.ExitFailed},
	} {
		cmd := command("--url", url, "stand", "reports", "p")
		var stderr strings.Builder
		cmd.Stdin, cmd.Stderr = strings.NewReader(tt.in), &stderr
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(stderr.String(), tt.says) {
			t.Errorf("input %q: exit code %d, %v, standard error %q", tt.in, code, err, &stderr)
		}
		if _, err := notes.Read(bytes.NewReader(out)); err != nil {
			t.Errorf("the output is no history: %v\n%s", err, out)
		}
	}
}
