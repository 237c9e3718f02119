package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A run goes on where another stopped: what has passed is not run again, and what has failed, what was not judged and what makes
// something for others is. A run that does not go on begins anew.
func TestAgain(t *testing.T) {
	t.Parallel()
	var all []string
	ran := filepath.Join(t.TempDir(), "ran")
	for name, body := range map[string]string{"good": "", "worse": `t.Error("loud")`, "disturbed": `t.Log("calm: not judged: it took 9s")`} {
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
	all = append(all, "--make", "server "+script+" server", "--make", "check "+script+" check", "--make", "broken "+script+" broken")
	history := filepath.Join(t.TempDir(), "test-times.json")
	run := func(args ...string) (did string, r *report, out string) {
		t.Helper()
		os.Remove(ran)
		var b bytes.Buffer
		r = newReport(newConsole(&b))
		if err := r.runAll(t.Context(), append(args, all...), history); err != nil {
			t.Fatal(err)
		}
		did = read1(t, ran)
		r.close()
		return did, r, b.String()
	}
	did, r, _ := run("--passed", "tree")
	if n := strings.Count(did, " "); n != 6 || r.passed != 2 || r.failed != 2 || r.before != 0 {
		t.Errorf("the first run did %q; %d passed, %d failed, %d before", did, r.passed, r.failed, r.before)
	}
	did, r, out := run("--again", "tree")
	for _, each := range []string{"worse ", "disturbed ", "server ", "broken "} {
		if !strings.Contains(did, each) {
			t.Errorf("the second run did %q, and not %s", did, each)
		}
	}
	if n := strings.Count(did, " "); n != 4 || r.before != 2 || !strings.Contains(out, "\nnot run again: 2 test programs and checks that have passed before, on the same files\n") {
		t.Errorf("the second run did %q, %d before:\n%s", did, r.before, out)
	}
	if did, _, _ := run("--again", "another tree"); strings.Count(did, " ") != 6 {
		t.Errorf("on other files the run did %q", did)
	}
	if did, _, _ := run("--passed", "tree"); strings.Count(did, " ") != 6 {
		t.Errorf("a run that began anew did %q", did)
	}
}

func read1(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
