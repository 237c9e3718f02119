package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lanes has tests that say how they are to be run, as package lane has it.
const lanes = `package p

import ("os"; "strings"; "testing")

type lanes struct{}

var lane lanes

func (lanes) Real(t *testing.T)    { look(t, "real") }
func (lanes) Alone(t *testing.T)   { look(t, "alone") }
func (lanes) Unraced(t *testing.T) { look(t, "unraced") }

func look(t *testing.T, mark string) {
	if seen, set := os.LookupEnv("SUCCESSION_LANE"); set && !strings.Contains(seen, mark) { t.Fatal("unseen") }
}

func TestPlain(t *testing.T) {}

func TestReal(t *testing.T) { lane.Real(t) }

func TestAlone(t *testing.T) { lane.Alone(t) }

func TestUnraced(t *testing.T) { lane.Unraced(t) }

func TestBoth(t *testing.T) {
	lane.Real(t)
	lane.Unraced(t)
}
`

// Each test is run where it says, and nowhere else; one that nothing runs is an error before anything is run.
func TestMarks(t *testing.T) {
	t.Parallel()
	dir := module(t, lanes)
	never := "//go:build !race\n\npackage p\n\nimport \"testing\"\n\nfunc TestNever(t *testing.T) {}\n"
	if err := os.WriteFile(filepath.Join(dir, "never_test.go"), []byte(never), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		runs string // the flags of the programs
		left string
	}{
		{args: []string{"", "@real", "@alone"}, runs: "-test.skip=^(TestReal|TestAlone|TestBoth)$, -test.run=^(TestReal|TestBoth)$, -test.run=^(TestAlone)$"},
		{args: []string{"-race", "@unraced", "-race @real", "@real @unraced", "@alone"}, runs: "-test.skip=^(TestNever|TestReal|TestAlone|TestUnraced|TestBoth)$, " +
			"-test.run=^(TestNever|TestUnraced)$, -test.run=^(TestReal)$, -test.run=^(TestBoth)$, -test.run=^(TestAlone)$"},
		{args: []string{"", "@real", "-race", "-race @unraced", "@alone"}, runs: "-test.skip=^(TestReal|TestAlone|TestBoth)$, -test.run=^(TestReal|TestBoth)$, " +
			"-test.skip=^(TestNever|TestReal|TestAlone|TestUnraced|TestBoth)$, -test.run=^(TestUnraced)$, -test.run=^(TestAlone)$"},
		{args: []string{"", "@real", "@alone", "-test.run=^TestReal$"}, runs: "-test.skip=^(TestReal|TestAlone|TestBoth)$, -test.run=^(TestReal|TestBoth)$, -test.run=^(TestAlone)$, -test.run=^TestReal$"},
		{args: []string{"-race", "@real"}, left: "no argument runs: example.org/p TestAlone, example.org/p TestNever, example.org/p TestUnraced"},
		{args: []string{""}, left: "no argument runs: example.org/p TestAlone, example.org/p TestBoth, example.org/p TestReal"},
		{args: []string{"@real", "@unraced", "@alone"}, left: "no argument runs: example.org/p's tests"},
	} {
		var args []string
		for _, words := range tt.args {
			before, behind := "", words
			if race, ok := strings.CutPrefix(words, "-race"); ok {
				before, behind = "-race", race
			}
			args = append(args, strings.Join([]string{dir, before, "./...", behind}, " "))
		}
		p, err := parse(args, t.Output())
		if tt.left != "" {
			if err == nil || err.Error() != tt.left {
				t.Errorf("%q: %v, want %q", tt.args, err, tt.left)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var runs []string
		for _, p := range p.lanes[0].programs {
			runs = append(runs, strings.Join(p.flags, " "))
		}
		if got := strings.Join(runs, ", "); got != tt.runs {
			t.Errorf("%q: the programs run\n%s\nwant\n%s", tt.args, got, tt.runs)
		}
	}
}

// A test that says it in its first line is not surprised, whatever this test runs in; one that says it where it is not
// looked for fails.
func TestUnseenMark(t *testing.T) {
	t.Setenv("SUCCESSION_LANE", "")
	dir := module(t, lanes+"\nfunc TestLate(t *testing.T) {\n\tt.Log()\n\tlane.Real(t)\n}\n")
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	err := r.runAll(t.Context(), []string{dir + " ./...", dir + " ./... @real", dir + " ./... @alone", dir + " ./... -test.run=^TestReal$"}, "")
	if err != nil || r.passed != 6 || r.failed != 1 || !strings.Contains(out.String(), "FAIL  example.org/p TestLate\n") {
		t.Errorf("%v, %d passed, %d failed, want 6 and 1, which is not where it says it is:\n%s", err, r.passed, r.failed, &out)
	}
}

// A test that was renamed, a list of packages that is empty, and a package that nobody has put on a lane are not left
// out in silence.
func TestNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	dir := module(t, "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\nfunc TestAs(t *testing.T) {}\n")
	if err := os.Mkdir(filepath.Join(dir, "q"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "q", "q_test.go"), []byte("package q\n\nimport \"testing\"\n\nfunc TestQ(t *testing.T) {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string // the end of an error
	}{
		{args: []string{dir + " . -test.run=^TestA$"}},
		{args: []string{dir + " . -test.run=^(TestA|TestAs)$"}},
		{args: []string{dir + " . -test.run=^Test[^C]|^TestA$/^L"}},
		{args: []string{dir + " . -test.run=^TestB$"}, want: `: ^TestB$`},
		{args: []string{dir + " . -test.run=^(TestA|Test)$"}, want: `: ^Test$`},
		{args: []string{dir + " . -test.run=^Test[^A]|^TestA$/^L"}, want: `: ^Test[^A]`},
		{args: []string{dir + " -race  -test.timeout=9m"}, want: `names no package`},
		{args: []string{" "}, want: `an argument is empty`},
		{args: []string{dir + " .", dir + " ./q -test.run=Q", "--all", dir + " ./..."}},
		{args: []string{dir + " .", "--all", dir + " ./..."}, want: `no argument runs: example.org/p/q`},
	} {
		if _, err := parse(tt.args, t.Output()); (err == nil) != (tt.want == "") || err != nil && !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.want)
		}
	}
}
