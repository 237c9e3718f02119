package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The test of this module fails in every second run, by a file that it leaves.
const source = `package p

import ("os"; "testing")

func TestFlaky(t *testing.T) {
	t.Run("a b", func(t *testing.T) {
		if os.Remove("mark") == nil {
			t.Error("loud")
			return
		}
		os.WriteFile("mark", nil, 0o644)
	})
	t.Run("other", func(t *testing.T) { t.Error("not asked for") })
}

func TestSound(t *testing.T) {}

func TestSoon(t *testing.T) {
	if os.Remove("calm") != nil {
		t.Log("calm: not judged: it took 9s")
		os.WriteFile("calm", nil, 0o644)
	}
}

func TestNeverCalm(t *testing.T) { t.Log("calm: not judged: it took 9s") }
`

// module makes a module of that test in a new folder, with another module in it, and goes there.
func module(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.org/p\n\ngo 1.26\n", "p_test.go": source,
		"q/go.mod": "module example.org/q\n\ngo 1.26\n", "q/q_test.go": "package q\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) {}\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("TMPDIR", t.TempDir())
}

func TestStress(t *testing.T) {
	module(t)
	for _, tt := range []struct {
		name, in string
		failed   int
		says     string
	}{
		{"TestFlaky/a_b", "./...", 3, "TestFlaky/a_b: 3 of 6 runs failed (50.0 %)"},
		{"TestSound", ".", 0, "TestSound: 0 of 6 runs failed (0.0 %)"},
		{"TestOther", "./q", 0, "TestOther: 0 of 6 runs failed (0.0 %)"},
		{"TestSoon", "./...", 0, "; in 3 more something was not judged, as the machine was busy\n"},
	} {
		var out bytes.Buffer
		s := stress{name: tt.name, runs: 6, atOnce: 1, load: 1, out: &out}
		if err := s.build(t.Context(), tt.in); err != nil {
			t.Fatal(err)
		}
		failed, err := s.repeat(t.Context())
		if err != nil || failed != tt.failed || !strings.Contains(out.String(), tt.says) {
			t.Errorf("%s: %d failed, %v\n%s", tt.name, failed, err, &out)
		}
	}
	logs, err := filepath.Glob(filepath.Join(os.TempDir(), "stress-failed-*", "*.log"))
	if err != nil || len(logs) != 3 {
		t.Fatalf("logs of failed runs: %q, %v; want three", logs, err)
	}
	if text, err := os.ReadFile(logs[0]); err != nil || !strings.Contains(string(text), "loud") {
		t.Errorf("the log of a failed run is %q, %v", text, err)
	}
}

func TestNothingJudged(t *testing.T) {
	module(t)
	s := stress{name: "TestNeverCalm", runs: 2, atOnce: 1, out: new(bytes.Buffer)}
	if err := s.build(t.Context(), "./..."); err != nil {
		t.Fatal(err)
	}
	if _, err := s.repeat(t.Context()); err == nil || !strings.Contains(err.Error(), "too busy") {
		t.Errorf("runs in which nothing was judged: %v", err)
	}
}

func TestStressOfNothing(t *testing.T) {
	module(t)
	s := stress{name: "TestNobodyHas"}
	if err := s.build(t.Context(), "./..."); err == nil || !strings.Contains(err.Error(), "no package") {
		t.Errorf("a test that no package has: %v", err)
	}
	s = stress{name: "TestSound/none", runs: 3, atOnce: 1, out: new(bytes.Buffer)}
	if err := s.build(t.Context(), "./..."); err != nil {
		t.Fatal(err)
	}
	if _, err := s.repeat(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no test") {
		t.Errorf("a subtest that is not there: %v", err)
	}
}
