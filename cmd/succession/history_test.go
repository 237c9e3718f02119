//go:build linux

package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/elect/operate"
)

func TestHistory(t *testing.T) {
	url := localURL(t)
	if code, _, stderr := result(t, "--url", url, "run", "--id", "web-1", "reports", "--", "true"); code != 0 {
		t.Fatal(stderr)
	}
	p := start(t, "--url", url, "run", "--id", "web-2", "reports", "--", "sleep", "1000")
	p.event("started")
	if code, _, stderr := result(t, "--url", url, "resign", "reports", "--by", "anna", "--reason", "a test"); code != 0 {
		t.Fatal(stderr)
	}
	p.exits(75)
	p = start(t, "--url", url, "run", "--id", "web-3", "reports", "--", "sleep", "1000")
	p.event("started")
	var terms []past
	for len(terms) < 3 { // what has just begun is written soon
		code, stdout, stderr := here("--url", url, "history", "reports", "-o", "json")
		if err := json.Unmarshal([]byte(stdout), &terms); code != 0 || err != nil || len(terms) > 3 {
			t.Fatalf("exit code %d, output %s, standard error %s", code, stdout, stderr)
		}
	}
	for i, want := range []past{
		{operate.Past{ID: "web-1", Why: "resigned"}, false}, {operate.Past{ID: "web-2", Why: "asked to resign by anna: a test"}, false}, {operate.Past{ID: "web-3"}, true},
	} {
		got := terms[i]
		if got.ID != want.ID || got.Why != want.Why || got.Leads != want.Leads || got.Began.IsZero() || got.Ended.IsZero() != want.Leads || got.Token == 0 {
			t.Errorf("term %d is %+v, want %+v", i, got, want)
		}
	}
}

func TestHistoryTable(t *testing.T) {
	began := time.Date(2026, 11, 24, 14, 26, 0, 0, time.Local)
	at := func(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }
	var out strings.Builder
	if err := printHistory(&out, []past{
		{operate.Past{ID: "web-1", Token: 7, Began: at(0), Ended: at(1.5), Why: "resigned"}, false},
		{operate.Past{ID: "web\x1b[2J", Token: 8, Began: at(2), Ended: at(62)}, false},
		{operate.Past{ID: "web-1", Token: 9, Began: at(100), Ended: at(99), Why: "a clock went back"}, false},
		{operate.Past{ID: "web-2", Token: 10, Began: at(110)}, true},
		{operate.Past{ID: "web-3", Token: 11, Began: at(111)}, false},
	}, at(120)); err != nil {
		t.Fatal(err)
	}
	const want = `ID            TOKEN  FROM                 FOR           END
web-1         7      2026-11-24 14:26:00  1.5s          resigned
web\u001b[2J  8      2026-11-24 14:26:02  at most 1m0s  did not say why
web-1         9      2026-11-24 14:27:40  0s            a clock went back
web-2         10     2026-11-24 14:27:50  10s           leads
web-3         11     2026-11-24 14:27:51  ?             did not say why
`
	if out.String() != want {
		t.Errorf("output\n%s\nwant\n%s", &out, want)
	}
}

// Without --history there is none, and nothing is written; what was killed says nothing.
func TestHistoryOfTheSilent(t *testing.T) {
	url := localURL(t)
	start(t, "--url", url, "run", "--history", "0", "reports", "--", "true").exits(0)
	checkOutput(t, []string{"--url", url, "history", "reports", "-o", "json"}, 0, "[]\n")

	p := start(t, "--url", url, "run", "--id", "web-1", "--restart", "reports", "--", "sleep", "1000")
	p.event("started")
	leads := regexp.MustCompile(`web-1 .* leads\n`)
	for stdout := ""; !leads.MatchString(stdout); { // what has just begun is written soon
		_, stdout, _ = here("--url", url, "history", "reports")
	}
	p.signal(syscall.SIGKILL)
	p.exits(-9)
	p.nothingLeft()
	if _, stdout, _ := here("--url", url, "history", "reports"); !strings.Contains(stdout, "did not say why") {
		t.Errorf("after a kill the history is\n%s", stdout)
	}
}

// Nobody writes the history but elections.
func TestHistoryIsNotSet(t *testing.T) {
	for _, args := range [][]string{{"set", "reports.history", "x"}, {"delete", "reports.history"}} {
		if code, _, stderr := here(append(args, "--url", localURL(t))...); code != 125 || !strings.Contains(stderr, "which keeps a fence, a history") {
			t.Errorf("%q: exit code %d, standard error %q", args, code, stderr)
		}
	}
}
