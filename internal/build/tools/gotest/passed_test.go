package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A run goes on where another stopped: what has passed on this commit is not run again, and what has failed, what was not judged,
// what was skipped, what makes something for others, and what depends on more than the files is. A run that does not go on begins anew.
func TestAgain(t *testing.T) {
	commit := repository(t)
	commit("1")
	var all []string
	ran := filepath.Join(t.TempDir(), "ran")
	for name, body := range map[string]string{"good": "", "worse": `t.Error("loud")`, "disturbed": `t.Log("calm: not judged: it took 9s")`, "lacking": `t.Skip("there is no Patroni")`} {
		dir := module(t, fmt.Sprintf(`package p

import ("os"; "testing")

func TestA(t *testing.T) {
	f, err := os.OpenFile(%q, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil { t.Fatal(err) }
	defer f.Close()
	f.WriteString("%s ")
	%s
}
`, ran, name, body))
		all = append(all, "--then", dir+" ./... +server -test.timeout="+strconv.Itoa(len(name))+"m") // tells it from the others, which have the same path
	}
	script := filepath.Join(t.TempDir(), "note")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf \"$1 \" >> "+ran+"\n[ $1 != broken ]\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	all = append(all, "--make", "server "+script+" server", "--make", "check "+script+" check", "--make", "broken "+script+" broken", "--make", "asks "+script+" asks")
	history := filepath.Join(t.TempDir(), "test-times.json")
	run := func(args ...string) (did string, r *report, out string) {
		t.Helper()
		os.Remove(ran)
		var b bytes.Buffer
		r = newReport(newConsole(&b))
		if err := r.runAll(t.Context(), append(args, all...), history); err != nil {
			t.Fatal(err)
		}
		did = contents(t, ran)
		r.close()
		return did, r, b.String()
	}
	const programs, commands = 4, 4
	count := func(did string, want int) {
		t.Helper()
		if n := strings.Count(did, " "); n != want {
			t.Errorf("the run did %q, want %d", did, want)
		}
	}
	did, r, _ := run("--passed", "check", "broken")
	if count(did, programs+commands); r.passed != 2 || r.failed != 2 || r.before != 0 {
		t.Errorf("the first run: %d passed, %d failed, %d before", r.passed, r.failed, r.before)
	}
	did, r, out := run("--again", "check", "broken")
	for _, each := range []string{"worse ", "disturbed ", "lacking ", "server ", "broken ", "asks "} {
		if !strings.Contains(did, each) {
			t.Errorf("the second run did %q, and not %s", did, each)
		}
	}
	if count(did, 6); r.before != 2 || !strings.Contains(out, "\nnot run again: 2 test programs and checks that have passed before, on this commit\n") {
		t.Errorf("the second run did %q, %d before:\n%s", did, r.before, out)
	}
	write(t, "2")
	if err := newReport(newConsole(io.Discard)).runAll(t.Context(), append([]string{"--again"}, all...), history); err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("with something that is not committed: %v", err)
	}
	did, _, _ = run("--passed", "check", "broken")
	count(did, programs+commands)
	commit("2")
	did, _, _ = run("--again", "check", "broken")
	count(did, programs+commands) // nothing was kept before
	did, _, _ = run("--again", "check", "broken")
	count(did, 6)
	did, _, _ = run("--passed", "check", "broken")
	count(did, programs+commands)
}

// What passes after somebody has changed a file says nothing of the commit.
func TestChangedMeanwhile(t *testing.T) {
	repository(t)("1")
	dir := t.TempDir()
	var said bytes.Buffer
	p, err := openPassed(dir, false, &said)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"before", "meanwhile", "after"} {
		write(t, []string{"1", "2", "1"}[i])
		if err := p.note(key); err != nil {
			t.Fatal(err)
		}
	}
	if p, err = openPassed(dir, true, &said); err != nil || !p.keys["before"] || len(p.keys) != 1 {
		t.Errorf("%v was noted, %v; want what passed before the change", p.keys, err)
	}
	if !strings.Contains(said.String(), "not noted") {
		t.Errorf("nobody is told: %q", &said)
	}
}

// repository makes a git repository, and goes there. The func commit commits a file with the text.
func repository(t *testing.T) (commit func(text string)) {
	t.Helper()
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	return func(text string) {
		t.Helper()
		write(t, text)
		git("add", ".")
		git("commit", "-qm", text)
	}
}

func write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile("file", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
