package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A run goes on where another stopped: what has passed is not run again, and what has failed, what was not judged,
// what was skipped, what makes something for others, and what depends on more than the files is. A run that does not go on begins anew.
func TestAgain(t *testing.T) {
	commit := repository(t)
	write(t, "file", "1")
	commit()
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
	if count(did, 6); r.before != 2 || !strings.Contains(out, "\nnot run again: 2 test programs and checks that have passed before, and were to do the same again\n") {
		t.Errorf("the second run did %q, %d before:\n%s", did, r.before, out)
	}
	write(t, "file", "2")
	if err := newReport(newConsole(io.Discard)).runAll(t.Context(), append([]string{"--again"}, all...), history); err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("with something that is not committed: %v", err)
	}
	did, _, _ = run("--passed", "check", "broken")
	count(did, programs+commands)
	commit()
	did, _, _ = run("--again", "check", "broken")
	count(did, programs+commands) // nothing was kept before
	did, _, _ = run("--again", "check", "broken")
	count(did, 6)
	did, _, _ = run("--passed", "check", "broken")
	count(did, programs+commands)
}

// What has passed on an earlier commit is run again if it, or what it has read, is another now.
func TestAgainLater(t *testing.T) {
	commit := repository(t)
	ran := filepath.Join(t.TempDir(), "ran")
	body := `package p

import ("os"; "os/exec"; "testing")

func TestA(t *testing.T) {
	os.ReadFile("../page.md")
	if %t { exec.LookPath("go") }
	f, err := os.OpenFile(%q, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil { t.Fatal(err) }
	defer f.Close()
	f.WriteString("%s ")
}
`
	write(t, "go.mod", "module m\n\ngo 1.24\n")
	write(t, "p/p_test.go", fmt.Sprintf(body, false, ran, "p"))
	write(t, "q/q_test.go", fmt.Sprintf(body, true, ran, "q"))
	history := filepath.Join(t.TempDir(), "test-times.json")
	did := func(how string) string {
		t.Helper()
		os.Remove(ran)
		if err := newReport(newConsole(io.Discard)).runAll(t.Context(), []string{". ./...", how}, history); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(ran)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		names := strings.Fields(string(b))
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	write(t, "page.md", "1")
	for _, step := range []struct{ change, to, how, want string }{
		{"p/p.go", "package p", "--passed", "p q"},
		{"p/p.go", "package p", "--again", ""},
		{"p/other.md", "", "--again", "q"}, // it could have built something from it
		{"other_test.go", "package m", "--again", "q"},
		{"page.md", "2", "--again", "p q"},
		{"p/p_test.go", fmt.Sprintf(body, false, ran, "P"), "--again", "P q"},
		{"server.java", "", "--again", "P q"},
		{"server.java", "", "--passed", "P q"},
	} {
		write(t, step.change, step.to)
		commit()
		if got := did(step.how); got != step.want {
			t.Errorf("after a change of %s, %s runs %q, want %q", step.change, step.how, got, step.want)
		}
	}
}

// Parts of one program that run at the same time are each known by what they have read.
func TestAgainTogether(t *testing.T) {
	commit := repository(t)
	out := t.TempDir()
	write(t, "go.mod", "module m\n\ngo 1.24\n")
	write(t, "p/p_test.go", fmt.Sprintf(`package p

import ("os"; "testing"; "time")

func part(t *testing.T, own, other string) {
	os.WriteFile(%[1]q+"/began-"+own, nil, 0o644)
	began := time.Now()
	for _, err := os.Stat(%[1]q+"/began-"+other); err != nil; _, err = os.Stat(%[1]q+"/began-"+other) {
		if time.Since(began) > time.Minute {
			t.Fatal("the other part does not run")
		}
		time.Sleep(time.Millisecond)
	}
	for range 200000 {
		os.Getenv("HOME") // each is a line of the log
	}
	os.ReadFile("../page-"+own+".md")
	os.WriteFile(%[1]q+"/ran-"+own, nil, 0o644)
}

func TestA(t *testing.T) { part(t, "a", "b") }

func TestB(t *testing.T) { part(t, "b", "a") }
`, out))
	history := filepath.Join(t.TempDir(), "test-times.json")
	for i, step := range []struct{ change, how, want string }{
		{"page-a.md", "--passed", "[ran-a ran-b]"},
		{"page-c.md", "--again", "[]"},
		{"page-a.md", "--again", "[ran-a]"},
		{"page-b.md", "--again", "[ran-b]"},
	} {
		write(t, step.change, strconv.Itoa(i))
		commit()
		var said bytes.Buffer
		r := newReport(newConsole(&said))
		if err := r.runAll(t.Context(), []string{". ./... -test.run=TestA", "--", ". ./... -test.run=TestB", step.how}, history); err != nil || r.failed > 0 {
			t.Fatalf("%v, %d failed:\n%s", err, r.failed, &said)
		}
		r.close()
		ran := []string{}
		for _, name := range []string{"ran-a", "ran-b"} {
			if os.Remove(filepath.Join(out, name)) == nil {
				ran = append(ran, name)
			}
		}
		if got := fmt.Sprint(ran); got != step.want {
			t.Errorf("after a change of %s, %s: %s, want %s", step.change, step.how, got, step.want)
		}
	}
}

// What passes after somebody has changed a file says nothing of the commit.
func TestChangedMeanwhile(t *testing.T) {
	commit := repository(t)
	write(t, "file", "1")
	commit()
	file := filepath.Join(t.TempDir(), "passed")
	var said bytes.Buffer
	p, err := openPassed(file, false, &said)
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"before", "meanwhile", "after"} {
		write(t, "file", []string{"1", "2", "1"}[i])
		if err := p.note(key, "", everything); err != nil {
			t.Fatal(err)
		}
	}
	if p, err = openPassed(file, true, &said); err != nil || !p.has("before", "") || len(p.known) != 1 {
		t.Errorf("%v was noted, %v; want what passed before the change", p.known, err)
	}
	if !strings.Contains(said.String(), "not noted") {
		t.Errorf("nobody is told: %q", &said)
	}
}

// repository makes a git repository, and goes there. The func commit commits all files.
func repository(t *testing.T) (commit func()) {
	t.Helper()
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	return func() {
		t.Helper()
		git("add", ".")
		git("commit", "-q", "--allow-empty", "-m", "x")
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
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
