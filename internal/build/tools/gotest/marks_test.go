package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lanes has tests that say how they are to be run, and write down that they were.
const lanes = `package p

import ("os"; "strings"; "testing")

type lanes struct{}

var lane lanes

func (lanes) Real(t *testing.T)    { look(t, "real") }
func (lanes) Unraced(t *testing.T) { look(t, "unraced") }

func look(t *testing.T, mark string) {
	if seen, set := os.LookupEnv("SUCCESSION_LANE"); set && !strings.Contains(seen, mark) { t.Fatal("unseen") }
}

func ran(t *testing.T) {
	f, err := os.OpenFile("ran", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil { _, err = f.WriteString(t.Name() + "\n") }
	if err != nil { t.Error(err) }
}

func TestPlain(t *testing.T) { ran(t) }

func TestReal(t *testing.T) {
	lane.Real(t)
	ran(t)
}

func TestUnraced(t *testing.T) {
	lane.Unraced(t)
	ran(t)
}

func TestBoth(t *testing.T) {
	lane.Real(t)
	lane.Unraced(t)
	ran(t)
}
`

// Each test is run where it says, and nowhere else; one that nothing runs is an error before anything is run.
func TestMarks(t *testing.T) {
	t.Parallel()
	dir := module(t, lanes)
	never := "//go:build !race\n\npackage p\n\nimport \"testing\"\n\nfunc TestNever(t *testing.T) { ran(t) }\n"
	if err := os.WriteFile(filepath.Join(dir, "never_test.go"), []byte(never), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		ran  string
		left string
	}{
		{args: []string{"", "@real"}, ran: "Both Never Plain Real Unraced"},
		{args: []string{"-race", "@unraced", "-race @real", "@real @unraced"}, ran: "Both Never Plain Real Unraced"},
		{args: []string{"", "@real", "-race", "-race @unraced"}, ran: "Both Never Plain Plain Real Unraced Unraced"},
		{args: []string{"", "@real", "-test.run=^TestReal$"}, ran: "Both Never Plain Real Real Unraced"},
		{args: []string{"-race", "@real"}, left: "example.org/p TestNever, example.org/p TestUnraced"},
		{args: []string{""}, left: "example.org/p TestBoth, example.org/p TestReal"},
		{args: []string{"@real", "@unraced"}, left: "example.org/p's tests"},
	} {
		list := filepath.Join(dir, "ran")
		os.Remove(list)
		var args []string
		for i, words := range tt.args {
			before, behind := "", words
			if race, ok := strings.CutPrefix(words, "-race"); ok {
				before, behind = "-race", race
			}
			args = append(args, strings.Join([]string{dir, before, "./...", behind}, " "))
			if i < len(tt.args)-1 {
				args = append(args, "--")
			}
		}
		var out bytes.Buffer
		r := newReport(newConsole(&out))
		err := r.runAll(args, "")
		text, _ := os.ReadFile(list)
		names := strings.Fields(strings.ReplaceAll(string(text), "Test", ""))
		slices.Sort(names)
		wrong := err != nil && tt.left == "" || tt.left != "" && (err == nil || err.Error() != "no argument runs: "+tt.left)
		if got := strings.Join(names, " "); wrong || got != tt.ran || r.failed > 0 {
			t.Errorf("%q: %v, %q have run, %d failed, want %q and left over %q:\n%s", tt.args, err, got, r.failed, tt.ran, tt.left, &out)
		}
	}
}

// A test that says it where it is not looked for fails.
func TestUnseenMark(t *testing.T) {
	t.Parallel()
	dir := module(t, lanes+"\nfunc TestLate(t *testing.T) {\n\tran(t)\n\tlane.Real(t)\n}\n")
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	if err := r.runAll([]string{dir + " ./...", dir + " ./... @real"}, ""); err != nil || r.failed != 1 || !strings.Contains(out.String(), "unseen") {
		t.Errorf("%v, %d failed, want 1, which is not where it says it is:\n%s", err, r.failed, &out)
	}
}

// A test that was renamed is not left out in silence.
func TestNamesNothing(t *testing.T) {
	t.Parallel()
	dir := module(t, "package p\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n")
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	err := r.runAll([]string{dir + " ./... -test.run=^TestA$", dir + " ./... -test.run=^TestB$"}, "")
	if err != nil || r.passed != 1 || r.failed != 1 || !strings.Contains(out.String(), `no test is called as in ["-test.run=^TestB$"]`) {
		t.Errorf("%v, %d passed, %d failed, want 1 and 1:\n%s", err, r.passed, r.failed, &out)
	}
}
