package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "keep" || os.Args[1] == "low") {
		main() // in place of a test program, or of another; see keep and low
		return
	}
	os.Exit(m.Run())
}

// Each case is a module of one package that go test really runs.
func TestReport(t *testing.T) {
	const head = "package p\n\nimport \"testing\"\n\n"
	tests := []struct {
		name, source string
		closing      string
		shows        []string
		hides        []string
	}{
		{
			name:    "pass with subtests",
			source:  head + `func TestA(t *testing.T) { t.Log("quiet"); t.Run("b", func(t *testing.T) {}) }`,
			closing: "tests: 2 passed, 0 failed, 0 skipped",
			shows:   []string{"ok    example.org/p  2 tests, ", "s   [1 of 1, 0 failed]\n"}, // and not how long, as it never ran before
			hides:   []string{"quiet", "skipped:", "calm:"},
		},
		{
			name:    "a failure and a skip",
			source:  head + `func TestA(t *testing.T) {}; func TestB(t *testing.T) { t.Error("loud") }; func TestC(t *testing.T) { t.Skip("why") }`,
			closing: "tests: 1 passed, 1 failed, 1 skipped",
			shows:   []string{"loud", "skip  example.org/p TestC\n    p_test.go:5: why\n", "FAIL  example.org/p  1 of 3 tests", "== what has failed\nFAIL  example.org/p TestB\n    p_test.go:5: loud\nskipped: 0 impossible there, 0 not wired, 0 known failures (waived), 0 not judged, 1 other\ntests: "},
		},
		{
			name: "rules of the conformance suite",
			source: head + `func TestA(t *testing.T) {
				for _, s := range []string{"impossible: L1.a (x)", "impossible: L1.b (x)", "not wired: L1.c (x)", "waived: L1.d\n  more", "odd: e"} {
					t.Run("r", func(t *testing.T) { t.Log("impossible"); t.Skip("conformance: " + s) })
				}
				t.Run("none", func(t *testing.T) { t.SkipNow() })
			}`,
			closing: "tests: 1 passed, 0 failed, 6 skipped",
			hides:   []string{"L1.a"},
			shows:   []string{"L1.c", "L1.d", "odd", "\nskipped: 2 impossible there, 1 not wired, 1 known failures (waived), 0 not judged, 2 other\ntests: "},
		},
		{
			name: "some were disturbed",
			source: head + `func TestA(t *testing.T) {
				t.Log("calm: repeated: timers 90 ms late")
				t.Run("b", func(t *testing.T) { t.Log("calm: repeated: timers 80 ms late"); t.Skip("conformance: not judged: L1.a x\ncalm: not judged: L1.a: timers 70 ms late") })
				t.Run("d", func(t *testing.T) { t.Log("calm: not judged: it took 9s") })
			}
			func TestC(t *testing.T) { t.Log("calm: repeated: a request took 3s"); t.Error("loud") }`,
			closing: "tests: 2 passed, 1 failed, 1 skipped",
			shows: []string{"skip  example.org/p TestA/b\n",
				"\nnot judged: example.org/p TestA/b: L1.a: timers 70 ms late\nnot judged: example.org/p TestA/d: it took 9s\ncalm: 3 trials repeated, 2 not judged: the machine was busy\n" +
					"skipped: 0 impossible there, 0 not wired, 0 known failures (waived), 1 not judged, 0 other\ntests: "},
		},
		{
			name: "too many were disturbed",
			source: head + `func TestA(t *testing.T) {
				for range 6 { t.Run("b", func(t *testing.T) { t.Skip("calm: not judged: timers 70 ms late") }) }
			}`,
			closing: "tests: 1 passed, 1 failed, 6 skipped",
			shows: []string{"FAIL  6 rules about time or cost could not be judged, and 5 may be, because the machine was too busy; run it again with less beside it\n",
				"\ncalm: 0 trials repeated, 6 not judged: the machine was busy\n"},
		},
		{
			name: "as many of a thousand are few",
			source: head + `func TestA(t *testing.T) {
				for i := range 1206 { t.Run("b", func(t *testing.T) { if i % 201 == 0 { t.Skip("calm: not judged: timers 70 ms late") } }) }
			}`,
			closing: "tests: 1201 passed, 0 failed, 6 skipped",
			shows:   []string{"\ncalm: 0 trials repeated, 6 not judged: the machine was busy\n"},
		},
		{
			name: "for ./test all",
			source: head + `type lanes struct{}
				func (lanes) All(t *testing.T) { t.Skip("lane: only in ./test all; more") }
				var lane lanes
				func TestA(t *testing.T) { t.Run("b", func(t *testing.T) { lane.All(t) }) }
				func TestC(t *testing.T) { lane.All(t) }`,
			closing: "tests: 1 passed, 0 failed, 0 skipped",
			shows:   []string{"\nfor ./test all: 2\ntests: "},
			hides:   []string{"skip  ", "other"},
		},
		{
			name:    "does not build",
			source:  head + `func TestA(t *testing.T) { undefined() }`,
			closing: "tests: 0 passed, 1 failed, 0 skipped",
			shows:   []string{"\n== what has failed\nFAIL  example.org/p [example.org/p.test] does not build\n    ./p_test.go:5:28: undefined: undefined\nFAIL  example.org/p: not tested, as example.org/p [example.org/p.test] does not build\ntests: "},
		},
		{
			name:    "panic",
			source:  head + `func TestA(t *testing.T) {}; func TestB(t *testing.T) { panic("boom") }`,
			closing: "tests: 1 passed, 1 failed, 0 skipped",
			shows:   []string{"boom"},
		},
		{
			name:    "the process ends in the middle of a test",
			source:  "package p\n\nimport (\"os\"; \"testing\")\n\n" + `func TestA(t *testing.T) { t.Run("b", func(t *testing.T) { os.Exit(3) }) }`,
			closing: "tests: 0 passed, 2 failed, 0 skipped",
		},
		{
			name:    "TestMain fails after the tests",
			source:  "package p\n\nimport (\"os\"; \"testing\")\n\n" + `func TestMain(m *testing.M) { m.Run(); println("leak"); os.Exit(1) }; func TestA(t *testing.T) {}`,
			closing: "tests: 1 passed, 1 failed, 0 skipped",
			shows:   []string{"\n== what has failed\nFAIL  example.org/p, and none of its tests\n    leak\n    exit status 1\ntests: "},
		},
		{
			name:    "none to run",
			source:  head + "var _ testing.TB",
			closing: "tests: 0 passed, 1 failed, 0 skipped",
			shows:   []string{"\n== what has failed\nFAIL  nothing was tested\ntests: "},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := module(t, tt.source)
			var out bytes.Buffer
			r := newReport(newConsole(&out))
			if err := r.runAll(t.Context(), []string{dir + " ./..."}, ""); err != nil {
				r.problem(err.Error())
			}
			if ok := r.close(); ok != strings.Contains(tt.closing, " 0 failed") {
				t.Errorf("close says %v", ok)
			}
			text := strings.TrimRight(out.String(), "\n")
			if last := text[strings.LastIndex(text, "\n")+1:]; last != tt.closing {
				t.Errorf("closing line is %q, want %q", last, tt.closing)
			}
			for _, s := range tt.shows {
				if !strings.Contains(text, s) {
					t.Errorf("output does not show %q", s)
				}
			}
			for _, s := range tt.hides {
				if strings.Contains(text, s) {
					t.Errorf("output shows %q", s)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

func TestRunOutsideAModule(t *testing.T) {
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	err := r.runAll(t.Context(), []string{t.TempDir() + " ./..."}, "")
	if err == nil && r.failed == 0 {
		t.Errorf("no module counts as a success:\n%s", &out)
	}
}

// The programs run in their folder, and get their flags.
func TestPrograms(t *testing.T) {
	t.Parallel()
	dir := module(t, `package p

import ("flag"; "os"; "testing")

var word = flag.String("word", "", "")

func TestA(t *testing.T) { if _, err := os.Stat("p_test.go"); err != nil || *word != "x" { t.Error(err, *word) } }

func TestB(t *testing.T) { t.Error("it was to be left out") }
`)
	for _, race := range []string{"", " -race"} {
		var out bytes.Buffer
		r := newReport(newConsole(&out))
		err := r.runAll(t.Context(), []string{dir + race + " ./... -test.skip=B -word=x", "--", dir + " ./... -test.run=A -word=x", "--idle", dir + " ./... -test.run=A -word=x",
			"--then", dir + " ./... -test.run=A -word=x", dir + " ./... -test.run=A -word=x"}, "")
		if err != nil || r.passed != 5 || r.failed != 0 {
			t.Errorf("%v, %d passed, %d failed, want 5 and 0:\n%s", err, r.passed, r.failed, &out)
		}
	}
}

// A failure is shown when it happens, also one of a subtest whose parent goes on, and of a parallel test.
func TestShownAtOnce(t *testing.T) {
	t.Parallel()
	dir := module(t, `package p

import ("os"; "testing"; "time")

func await(t *testing.T, file string) {
	for range 1000 {
		if _, err := os.Stat(file); err == nil { return }
		time.Sleep(10*time.Millisecond)
	}
	t.Error("nobody has seen that")
}

func TestA(t *testing.T) {
	t.Run("b", func(t *testing.T) { t.Error("loud") })
	await(t, "loud")
	t.Run("c", func(t *testing.T) {
		t.Run("d", func(t *testing.T) { t.Parallel(); await(t, "waits"); t.Error("shrill") })
		t.Run("e", func(t *testing.T) {
			t.Parallel()
			if err := os.WriteFile("waits", nil, 0o644); err != nil { t.Error(err) }
			await(t, "shrill")
		})
	})
}
`)
	var out bytes.Buffer
	r := newReport(newConsole(writerFunc(func(b []byte) (int, error) {
		for _, word := range []string{"loud", "shrill"} {
			if strings.Contains(string(b), word) {
				if err := os.WriteFile(filepath.Join(dir, word), nil, 0o644); err != nil {
					t.Error(err)
				}
			}
		}
		return out.Write(b)
	})))
	if err := r.runAll(t.Context(), []string{dir + " ./... -test.parallel=2"}, ""); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "nobody") || !strings.Contains(text, "FAIL  example.org/p TestA/c/d\n") || r.failures.Load() != 4 {
		t.Errorf("failures are not shown at once, or not the four that there are:\n%s", text)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func module(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.org/p\n\ngo 1.26\n", "p_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
