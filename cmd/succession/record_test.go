//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/recipes/record"
)

// recordURL returns the URL of a new coordinator with the record "r", whose value is "old" and
// whose version is 1.
func recordURL(t *testing.T) string {
	t.Helper()
	url, _ := inMemory(t)
	checkOutput(t, []string{"--url", url, "set", "r", "old"}, 0, "1\n")
	return url
}

func TestRecord(t *testing.T) {
	const is, absent = `{"value":"old","version":1}` + "\n", "null\n"
	for _, tt := range []struct {
		args []string
		code int
		want string
		says string // on standard error
		then string // what get -o json r prints afterwards
	}{
		{[]string{"get", "r"}, 0, "old", "", is},
		{[]string{"get", "other"}, ui.ExitAbsent, "", `there is no record "other"`, is},
		{[]string{"get", "other", "-o", "json"}, ui.ExitAbsent, absent, `there is no record "other"`, is},
		{[]string{"get", "r", "s"}, ui.ExitFailed, "", "as in: succession get config/limits", is},
		{[]string{"get", "/r"}, ui.ExitFailed, "", "begins with a slash", is},
		{[]string{"set", "r", "new"}, 0, "2\n", "", `{"value":"new","version":2}` + "\n"},
		{[]string{"set", "r", "new", "-o", "json"}, 0, `{"version":2}` + "\n", "", `{"value":"new","version":2}` + "\n"},
		{[]string{"set", "r", ""}, 0, "2\n", "", `{"value":"","version":2}` + "\n"},
		{[]string{"set", "r", "--", "-1"}, 0, "2\n", "", `{"value":"-1","version":2}` + "\n"},
		{[]string{"set", "r", "-1"}, ui.ExitFailed, "", `write "--" before`, is},
		{[]string{"set", "r", "a\x1b\xff"}, 0, "2\n", "", `{"base64":"YRv/","version":2}` + "\n"},
		{[]string{"set", "--at", "1", "r", "new"}, 0, "2\n", "", `{"value":"new","version":2}` + "\n"},
		{[]string{"set", "--at", "2", "r", "new"}, ui.ExitRefused, "", "not at version 2, but at version 1", is},
		{[]string{"set", "--at", "1", "other", "new"}, ui.ExitRefused, "", "not at version 1, but absent", is},
		{[]string{"set", "--at", "absent", "r", "new"}, ui.ExitRefused, "", "not absent, but at version 1", is},
		{[]string{"set", "--at", "absent", "other", "new"}, 0, "2\n", "", is},
		{[]string{"set", "--at", "", "r", "new"}, ui.ExitFailed, "", "give a version", is},
		{[]string{"set", "--at", "0", "r", "new"}, ui.ExitFailed, "", "give a version", is},
		{[]string{"set", "r"}, ui.ExitFailed, "", "want a NAME and one VALUE", is},
		{[]string{"set", "r", strings.Repeat("x", backend.MaxRecord+1)}, ui.ExitFailed, "", "at most 262144", is},
		{[]string{"delete", "r"}, 0, "", "", absent},
		{[]string{"delete", "--at", "1", "r"}, 0, "", "", absent},
		{[]string{"delete", "--at", "2", "r"}, ui.ExitRefused, "", "not at version 2, but at version 1", is},
		{[]string{"delete", "other"}, ui.ExitAbsent, "", `there is no record "other"`, is},
		{[]string{"delete", "--at", "2", "other"}, ui.ExitAbsent, "", `there is no record "other"`, is},
		{[]string{"delete", "--at", "absent", "r"}, ui.ExitFailed, "", "nothing to delete", is},
		{[]string{"follow"}, ui.ExitFailed, "", "NAME of one record", is},
	} {
		t.Run(strings.Join(tt.args, " ")[:min(20, len(strings.Join(tt.args, " ")))], func(t *testing.T) {
			url := recordURL(t)
			code, stdout, stderr := here(append([]string{"--url", url}, tt.args...)...)
			if code != tt.code || stdout != tt.want || !strings.Contains(stderr, tt.says) || strings.Count(stderr, "\n") != min(tt.code, 1) {
				t.Errorf("%q: exit code %d, want %d; output %q, want %q; standard error %q, want %q in it", tt.args, code, tt.code, stdout, tt.want, stderr, tt.says)
			}
			if _, now, _ := here("--url", url, "get", "-o", "json", "r"); now != tt.then {
				t.Errorf("%q: the record is %s, want %s", tt.args, now, tt.then)
			}
		})
	}
}

// What belongs to an election, or to another line, is neither written nor deleted.
func TestRecordsOfElections(t *testing.T) {
	url, leader := lineOf(t, "web-1")
	check := func(says string, args ...string) {
		t.Helper()
		code, stdout, stderr := here(append([]string{"--url", url}, args...)...)
		if code != ui.ExitFailed || stdout != "" || !strings.Contains(stderr, says) {
			t.Errorf("%q: exit code %d, output %q, standard error %q, want %q in it", args, code, stdout, stderr, says)
		}
	}
	checkAll := func(says, name string) {
		t.Helper()
		check(says, "set", name, "x")
		check(says, "set", "--at", "absent", name, "x")
		check(says, "set", "--at", "1", name, "x")
		check(says, "delete", name)
		check(says, "delete", "--at", "1", name)
	}
	checkAll("which keeps a fence", "reports.fence")
	checkAll("its record keeps tokens growing", "reports") // which stands, and has no header yet
	checkAll("could be taken for a member", "reports/n_0000000000")
	checkAll("could be taken for a member", "reports/a/b")
	checkOutput(t, []string{"--url", url, "fence", "reports", "--at-least", "5000"}, 0, "every later token of \"reports\" is larger than 5000\n")
	if err := leader.Resign(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, before, _ := here("--url", url, "get", "reports")
	checkAll("its record keeps tokens growing", "reports") // where nobody stands
	checkAll("could be taken for a member", "reports/x")
	if _, after, _ := here("--url", url, "get", "reports"); after != before || !strings.Contains(after, "5000") {
		t.Errorf("the header was %s, and is %s", before, after)
	}
	check("an election's own record", "set", "other", before)
	checkOutput(t, []string{"--url", url, "set", "reports-position", "1"}, 0, "5\n")
}

// An election that comes into being when its name was found to be free keeps its header.
func TestRecordBecomesHeader(t *testing.T) {
	_, c := inMemory(t)
	b := c.Client("a")
	defer b.Close()
	if err := operate.New(b, "reports", "").RaiseFence(t.Context(), 5000); err != nil {
		t.Fatal(err)
	}
	r := record.New(b, "reports", record.Bytes())
	before, err := r.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []backend.Version{0, backend.Absent, before.Version} {
		if v, err := set(t.Context(), r, at, nil); err == nil {
			t.Errorf("set at %d has written version %d over the header", at, v)
		}
		if _, err := deleted(t.Context(), r, at); err == nil {
			t.Errorf("the header was deleted at %d", at)
		}
	}
	if after, err := r.Get(t.Context()); err != nil || after.Version != before.Version {
		t.Errorf("the record is at version %d, %v; want %d", after.Version, err, before.Version)
	}
}

// A value goes in by standard input and comes out as it was.
func TestRecordBytes(t *testing.T) {
	url := localURL(t)
	value := strings.Repeat("\x00\xff\n", backend.MaxRecord/3)
	cmd := command("--url", url, "set", "r", "-")
	cmd.Stdin = strings.NewReader(value)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code, stdout, stderr := result(t, "--url", url, "get", "r"); code != 0 || stdout != value {
		t.Errorf("exit code %d, output of %d bytes, want the %d that were set; standard error %q", code, len(stdout), len(value), stderr)
	}
	cmd = command("--url", url, "set", "r", "-")
	cmd.Stdin = strings.NewReader(strings.Repeat("x", 10*backend.MaxRecord))
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != ui.ExitFailed || !strings.Contains(string(out), "at most 262144") {
		t.Errorf("a value that is too long: %v, output %s", cmd.ProcessState, out)
	}
	for _, tt := range []struct{ value, shown string }{
		{"a\x1b[2J\nb", `a\u001b[2J` + "|b|"},
		{"a\n", "a|"},
	} {
		here("--url", url, "set", "r", tt.value)
		term := onTerminal(t, "--url", url, "get", "r")
		var shown strings.Builder
		for line := range term.lines {
			shown.WriteString(line + "|")
		}
		if shown.String() != tt.shown {
			t.Errorf("the terminal shows %q, want %q", shown.String(), tt.shown)
		}
	}
}

func TestFollow(t *testing.T) {
	url := localURL(t)
	w := start(t, "--url", url, "follow", "-o", "json", "config/r")
	text := start(t, "--url", url, "follow", "config/r")
	expect := func(json, plain string) {
		t.Helper()
		w.line(json)
		got, _ := text.next()
		if _, after, _ := strings.Cut(got, "  "); after != plain {
			t.Errorf("text %q, want %q after the time", got, plain)
		}
	}
	expect("null", "no record")
	for _, value := range []string{"a", "b\nc"} {
		_, version, _ := here("--url", url, "set", "config/r", value)
		version = strings.TrimSpace(version)
		quoted, _ := json.Marshal(value)
		expect(fmt.Sprintf(`{"value":%s,"version":%s}`, quoted, version), fmt.Sprintf("version %s  %s", version, ui.Visible(value)))
	}
	checkOutput(t, []string{"--url", url, "delete", "config/r"}, 0, "")
	expect("null", "no record")
	w.signal(syscall.SIGTERM)
	w.exits(143)
	text.signal(syscall.SIGINT)
	text.exits(130)
}
