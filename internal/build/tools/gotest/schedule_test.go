package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// What needs nothing runs while that is made which others need: to be built, or to be run. Whoever comes first in a
// lane has to wait as well as others, and does not keep them from running.
func TestNeeds(t *testing.T) {
	t.Parallel()
	first := module(t, `package p

import ("os"; "testing")

func TestA(t *testing.T) { if err := os.WriteFile("began", nil, 0o644); err != nil { t.Error(err) } }
`)
	second := module(t, `package p

import ("flag"; "os"; "testing")

var made = flag.String("made", "", "")

func TestA(t *testing.T) { if _, err := os.Stat(*made); err != nil { t.Error(err) } }
`)
	// The command ends when the first program has run, which therefore must not wait for it.
	script := filepath.Join(first, "make")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
i=0
until [ -e `+first+`/began ]; do i=$((i+1)); [ $i -lt 3000 ] || exit 1; sleep 0.01; done
echo making
touch `+first+`/made
`), 0o755); err != nil {
		t.Fatal(err)
	}
	toRun, toBuild := second+" ./... +server -made="+first+"/made", second+" +server ./... -made="+first+"/made"
	for _, args := range [][]string{{toRun, first + " ./..."}, {toBuild, first + " ./..."}, {toRun, "--then", first + " ./..."}} {
		for _, file := range []string{"began", "made"} {
			os.Remove(filepath.Join(first, file))
		}
		var out bytes.Buffer
		r := newReport(newConsole(&out))
		err := r.runAll(t.Context(), append(args, "--make", "server "+script), "")
		if err != nil || r.passed != 2 || r.failed != 0 || !strings.Contains(out.String(), "server: making\n") {
			t.Errorf("%q: %v, %d passed, %d failed, want 2 and 0, and a line of the command:\n%s", args, err, r.passed, r.failed, &out)
		}
	}
}

// While that is made which comes before, idle lanes run, and no others: the others would find nothing made yet. That it fails keeps nothing from running.
func TestBefore(t *testing.T) {
	t.Parallel()
	for _, exit := range []string{"0", "1"} {
		dir := module(t, `package p

import ("os"; "testing")

func TestIdle(t *testing.T) { if err := os.WriteFile("began", nil, 0o644); err != nil { t.Error(err) } }

func TestLane(t *testing.T) { if _, err := os.Stat("made"); err != nil { t.Error(err) } }
`)
		script := filepath.Join(dir, "make")
		if err := os.WriteFile(script, []byte(`#!/bin/sh
i=0
until [ -e `+dir+`/began ]; do i=$((i+1)); [ $i -lt 3000 ] || exit 1; sleep 0.01; done
touch `+dir+`/made
exit `+exit+`
`), 0o755); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		r := newReport(newConsole(&out))
		err := r.runAll(t.Context(), []string{dir + " ./... -test.run=Lane", "--idle", dir + " ./... -test.run=Idle",
			"--then", dir + " ./... -test.run=Lane", "--before", "server " + script}, "")
		if err != nil || r.passed != 3 || fmt.Sprint(r.failed) != exit {
			t.Errorf("%v, %d passed, %d failed, want 3 and %s:\n%s", err, r.passed, r.failed, exit, &out)
		}
	}
}

// What runs alone does so when all else has ended, and one at a time.
func TestAlone(t *testing.T) {
	t.Parallel()
	dir := module(t, `package p

import ("fmt"; "os"; "path/filepath"; "testing"; "time")

func TestLane(t *testing.T) {
	time.Sleep(300*time.Millisecond) // so that a mistake is not missed
	if err := os.WriteFile(fmt.Sprint("ended-", os.Getpid()), nil, 0o644); err != nil { t.Error(err) }
}

func TestAlone(t *testing.T) {
	if ended, _ := filepath.Glob("ended-*"); len(ended) != 4 { t.Errorf("%d others have ended", len(ended)) }
	if err := os.Mkdir("alone", 0o755); err != nil { t.Fatal(err) }
	if err := os.Remove("alone"); err != nil { t.Error(err) }
}
`)
	lane, alone := dir+" ./... -test.run=Lane", dir+" ./... -test.run=Alone"
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	err := r.runAll(t.Context(), []string{lane, "--", lane, "--idle", "--then", lane, lane, "--alone", alone, alone}, "")
	if err != nil || r.passed != 6 || r.failed != 0 {
		t.Errorf("%v, %d passed, %d failed, want 6 and 0:\n%s", err, r.passed, r.failed, &out)
	}
}

// What runs alone does not wait for what itself waits until a need has been made, and that does not begin beside it.
func TestAloneMeanwhile(t *testing.T) {
	t.Parallel()
	dir := module(t, `package p

import ("os"; "testing"; "time")

func TestLane(t *testing.T) { if err := os.WriteFile("lane", nil, 0o644); err != nil { t.Error(err) } }

func TestAlone(t *testing.T) {
	if err := os.WriteFile("began", nil, 0o644); err != nil { t.Error(err) }
	for range 3000 {
		if _, err := os.Stat("made"); err == nil { break }
		time.Sleep(10*time.Millisecond)
	}
	time.Sleep(300*time.Millisecond) // so that a mistake is not missed
	if _, err := os.Stat("lane"); err == nil { t.Error("another one has run meanwhile") }
}
`)
	script := filepath.Join(dir, "make")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
i=0
until [ -e `+dir+`/began ]; do i=$((i+1)); [ $i -lt 3000 ] || exit 1; sleep 0.01; done
touch `+dir+`/made
`), 0o755); err != nil {
		t.Fatal(err)
	}
	lane := dir + " ./... +server -test.run=Lane"
	for _, args := range [][]string{{lane, "--idle"}, {"--idle", "--then", lane}} {
		for _, file := range []string{"began", "made", "lane"} {
			os.Remove(filepath.Join(dir, file))
		}
		var out bytes.Buffer
		r := newReport(newConsole(&out))
		err := r.runAll(t.Context(), append(args, "--alone", dir+" ./... -test.run=Alone", "--low", "server "+script), "")
		if err != nil || r.passed != 2 || r.failed != 0 {
			t.Errorf("%q: %v, %d passed, %d failed, want 2 and 0:\n%s", args, err, r.passed, r.failed, &out)
		}
	}
}

// What has less priority has it towards all sessions, those of servers too. What is left of it in the end has it no more.
func TestPriority(t *testing.T) {
	t.Parallel()
	dir := module(t, `package p

import ("os"; "runtime"; "strings"; "syscall"; "testing"; "time")

func TestIdle(t *testing.T) {
	defer os.WriteFile("idle", nil, 0o644)
	if raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err != nil || 20-raw != 19 { t.Errorf("nice %d, %v", 20-raw, err) }
	if n := runtime.GOMAXPROCS(0); n != 1 { t.Errorf("%d processors", n) }
	text, err := os.ReadFile("/proc/self/autogroup")
	if err == nil && !strings.HasSuffix(string(text), " nice 19\n") { t.Errorf("the session's group: %s", text) }
}

func TestUsual(t *testing.T) {
	for range 3000 {
		if _, err := os.Stat("idle"); err == nil { break }
		time.Sleep(10*time.Millisecond)
	}
	if raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err != nil || 20-raw != NICE { t.Errorf("nice %d, %v", 20-raw, err) }
}
`)
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "p_test.go")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(source, []byte("NICE"), fmt.Append(nil, 20-raw)), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	low, rest := dir+" ./... -test.run=Idle", dir+" ./... -test.run=Usual"
	for _, args := range [][]string{{rest, rest, "--idle", low}, {"--idle", rest, rest + " -test.v"}} {
		if err := r.runAll(t.Context(), args, ""); err != nil {
			t.Error(err)
		}
	}
	if r.passed != 5 || r.failed != 0 {
		t.Errorf("%d passed, %d failed, want 5 and 0:\n%s", r.passed, r.failed, &out)
	}
}

// Where a need cannot be made, what needs it fails, and says what to do; the next in the list is made, and
// all else is run.
func TestNeedThatFails(t *testing.T) {
	t.Parallel()
	dir := module(t, "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n")
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	err := r.runAll(t.Context(), []string{dir + " ./... +broken", dir + " +broken ./... -test.v", dir + " ./... +whole", dir + " ./... -test.count=1",
		"--make", "broken go run ./nothing", "whole true"}, "")
	if err != nil || r.passed != 2 || r.failed != 3 {
		t.Errorf("%v, %d passed, %d failed, want 2 and 3", err, r.passed, r.failed)
	}
	r.close()
	line := `: not tested: it needs broken, and 'go run ./nothing' has failed (exit status 1): what it has printed is above`
	if text := out.String(); strings.Count(text, "FAIL  example.org/p"+line) != 4 || strings.Count(text, "FAIL  broken: 'go run") != 2 || !strings.Contains(text, "broken: ") { // each when it happens, and at the end
		t.Errorf("the output lacks lines %q:\n%s", line, text)
	}
	if err := newReport(newConsole(&out)).runAll(t.Context(), []string{dir + " ./... +unknown"}, ""); err == nil {
		t.Error("a need that no command makes is accepted")
	}
}

// Tests begin before all are built: here the second package is built when the test of the first has run.
func TestBuiltMeanwhile(t *testing.T) {
	t.Parallel()
	dir := module(t, `package p

import ("os"; "testing")

func TestA(t *testing.T) { if err := os.WriteFile("q/q_test.go", []byte("package q\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) {}\n"), 0o644); err != nil { t.Error(err) } }
`)
	if err := os.Mkdir(filepath.Join(dir, "q"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "q", "q_test.go"), []byte("package q\n\nfunc init() { wrong() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "wait")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ni=0\nwhile grep -q wrong "+dir+"/q/q_test.go; do i=$((i+1)); [ $i -lt 3000 ] || exit 1; sleep 0.01; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	if err := r.runAll(t.Context(), []string{dir + " .", dir + " +written ./q", "--make", "written " + script}, ""); err != nil || r.passed != 2 || r.failed != 0 {
		t.Errorf("%v, %d passed, %d failed, want 2 and 0:\n%s", err, r.passed, r.failed, &out)
	}
}

// What fails to build fails alone.
func TestOneDoesNotBuild(t *testing.T) {
	t.Parallel()
	dir := module(t, "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n")
	if err := os.Mkdir(filepath.Join(dir, "q"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "q", "q_test.go"), []byte("package q\n\nfunc init() { wrong() }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	if err := r.runAll(t.Context(), []string{dir + " ./..."}, ""); err != nil || r.passed != 1 || r.failed != 1 || !strings.Contains(out.String(), "[2 of 2, 1 failed]\n") {
		t.Errorf("%v, %d passed, %d failed, want 1 and 1, and both counted:\n%s", err, r.passed, r.failed, &out)
	}
}

// The next run knows how long it takes, and one with something new in it does not.
func TestLeft(t *testing.T) {
	t.Parallel()
	dir, file := module(t, "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n"), filepath.Join(t.TempDir(), "succession", "times.json")
	lane, then := dir+" ./...", dir+" ./... -test.count=1"
	for i, tt := range []struct {
		args []string
		want string
	}{
		{[]string{lane}, `\[1 of 1, 0 failed\]`},
		{[]string{lane, then}, `(?s)\[1 of 2, 0 failed\].*\[2 of 2, 0 failed\]`},
		{[]string{lane, then}, `\[1 of 2, 0 failed, less than a minute left\]`},
		{[]string{lane, dir + " ./... -test.v"}, `\[1 of 2, 0 failed\]`},
	} {
		var out bytes.Buffer
		r := newReport(newConsole(&out))
		if err := r.runAll(t.Context(), tt.args, file); err != nil || !regexp.MustCompile(tt.want).MatchString(out.String()) {
			t.Errorf("run %d: %v; want %s in\n%s", i, err, tt.want, &out)
		}
	}
	h := readHistory(file)
	if err := h.write(file, []timed{{name: "p TestA", seconds: 2}}); err != nil || len(readHistory(file).tests) != 0 {
		t.Errorf("nothing was run, and %v is known, %v", readHistory(file).tests, err)
	}
	h.note("p", time.Second)
	if err := h.write(file, []timed{{name: "p TestA", seconds: 2}, {name: "p TestB", seconds: 0.5}}); err != nil {
		t.Fatal(err)
	}
	if h := readHistory(file); len(h.tests) != 1 || h.tests["p TestA"] != 2*time.Second || h.took["p"] != time.Second {
		t.Errorf("%v is known of programs, and %v of tests", h.took, h.tests)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if h := readHistory(file); len(h.took) != 0 {
		t.Errorf("a damaged file says %v", h.took)
	}
}

// Each lane takes its own programs one after the other, and those for any go to the lane that ends first.
func TestEstimate(t *testing.T) {
	h := readHistory("")
	taking := func(key string, minutes int) *program {
		h.took[key] = time.Duration(minutes) * time.Minute
		return &program{key: key, state: built}
	}
	broken := taking("broken", 100)
	broken.state = ended
	one, two := &lane{programs: []*program{taking("a", 4), taking("b", 3)}}, &lane{programs: []*program{taking("c", 2), broken}}
	s := newSchedule(&plan{lanes: []*lane{one, two}, then: []*program{taking("d", 6), taking("e", 2)}}, "", h, new(passed))
	s.total = 5
	check := func(want string) {
		t.Helper()
		if got := s.left(); got != want {
			t.Errorf("left %q, want %q", got, want)
		}
	}
	check("about 9 min left") // a b e, and c d
	two.now, two.programs = two.programs[0], nil
	two.now.state, s.began[two.now] = running, time.Now().Add(-time.Minute)
	check("about 9 min left") // c has another minute
	s.began[two.now] = time.Now().Add(-time.Hour)
	check("about 8 min left") // c has taken longer than before
	server := &need{name: "server"}
	s.makes = [][]*need{{&need{name: "lint"}, server}}
	check("about 8 min left") // nothing needs it
	s.then[0].needs = []*need{server}
	check("at least 8 min left")
	if got, want := s.status(3), "0 of 5, 3 failed, at least 8 min left; making server"; got != want {
		t.Errorf("status %q, want %q", got, want)
	}
	server.made = true
	s.then[0].key = "new"
	check("at least 7 min left") // a b, and e after c
	clear(h.took)
	check("")
}

// What can be run at once is built first, and what needs something to be built waits for that.
func TestNextBuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		compiler, server := &need{name: "compiler"}, &need{name: "server"}
		named := func(name string, toBuild []*need, toRun ...*need) *build {
			return &build{module: name, needs: toBuild, programs: []*program{{needs: append(toRun, toBuild...)}}}
		}
		s := newSchedule(&plan{builds: []*build{named("to compile", []*need{compiler}), named("to serve", nil, server), named("free", nil)}}, "", history{}, new(passed))
		next := make(chan string)
		go func() {
			for b := s.nextBuild(); b != nil; b = s.nextBuild() {
				next <- b.module
			}
			close(next)
		}()
		for _, want := range []string{"free", "to serve"} {
			if got := <-next; got != want {
				t.Errorf("%s is built, want %s", got, want)
			}
		}
		synctest.Wait()
		select {
		case got := <-next:
			t.Errorf("%s is built, and there is no compiler", got)
		default:
		}
		s.isMade(compiler, nil)
		if got := <-next; got != "to compile" {
			t.Errorf("%s is built, want what needed the compiler", got)
		}
		if _, more := <-next; more {
			t.Error("something is built twice")
		}
	})
}

// What is built is run before what is not yet, and what is not yet, before what waits for a server.
func TestFirst(t *testing.T) {
	server := &need{name: "server"}
	list := []*program{{state: ended}, {state: built, needs: []*need{server}}, {key: "unbuilt"}, {key: "built", state: built}}
	for _, want := range []string{"built", "unbuilt"} {
		i := first(&list)
		if i < 0 || list[i].key != want {
			t.Fatalf("program %d is first, want the one that is %s", i, want)
		}
		list = slices.Delete(list, i, i+1)
	}
	if i := first(&list); i >= 0 || len(list) != 1 {
		t.Errorf("program %d of %d is first, and its server is not there", i, len(list))
	}
}
