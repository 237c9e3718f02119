//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// What differs from demo to demo: times, and numbers of the coordinator.
var varying = regexp.MustCompile(`\d+\.\d+s|\d+\.\d ms|n_\d+|token \d+`)

func TestDemo(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	code, stdout, stderr := here("demo", "--candidates", "3", "--hold", "1ms")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	got := varying.ReplaceAllStringFunc(stdout, func(s string) string {
		return regexp.MustCompile(`\d[\d.]*`).ReplaceAllString(s, "N")
	})
	got = regexp.MustCompile(`(?m)^ +`).ReplaceAllString(got, "")
	_, got, _ = strings.Cut(got, "\n")
	const want = `The first one leads: [1]. Each of the others watches the one in front of it.

TIME    LINE         WHAT HAPPENS
Ns   1            1 joins as n_N; nobody is in front
Ns  [1]           1 leads with token N
Ns  [1]  2        2 joins as n_N and watches 1
Ns  [1]  2   3    3 joins as n_N and watches 2
Ns   ·   2   3    1 leaves
Ns   ·  [2]  3    2 is woken and leads with token N, N ms later
Ns   ·   ·   3    2 leaves
Ns   ·   ·  [3]   3 is woken and leads with token N, N ms later
Ns   ·   ·   ·    3 leaves

3 leaders, one after the other. The tokens grew. 2 exits woke 2 candidates: one each.
`
	if got != want {
		t.Errorf("output\n%s\nwant\n%s", got, want)
	}
	if left, err := filepath.Glob(filepath.Join(tmp, "*")); err != nil || len(left) > 0 {
		t.Errorf("the demo left %q behind (%v)", left, err)
	}
}

func TestDemoJSON(t *testing.T) {
	code, stdout, stderr := here("demo", "--candidates", "2", "--hold", "1ms", "-o", "json", "--url", localURL(t))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got []string
	for line := range strings.Lines(stdout) {
		var s struct {
			Seconds                  float64
			Candidate, Behind, Token int
			Event, Key               string
			Summary                  map[string]int
		}
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, fmt.Sprint(s.Candidate, s.Event, s.Behind, s.Key != "", s.Token != 0, s.Summary))
	}
	want := []string{
		"1joined0 true false map[]", "1elected0 false true map[]", "2joined1 true false map[]",
		"1left0 false false map[]", "2elected0 false true map[]", "2left0 false false map[]",
		"00 false false map[exits:1 leaders:2 woken:1]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("steps\n%q\nwant\n%q", got, want)
	}
}

func TestDemoRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--candidates", "0"}, {"--candidates", "21"}, {"--hold", "-1s"}, {"more"}, {"--url", "nosuch:x"},
	} {
		if code, stdout, stderr := here(append([]string{"demo"}, args...)...); code != ui.ExitFailed || stdout != "" || strings.Count(stderr, "\n") != 1 {
			t.Errorf("demo %q: exit code %d, output %q, standard error %q", args, code, stdout, stderr)
		}
	}
}

func TestDemoLeavesOthersAlone(t *testing.T) {
	url := "local:" + t.TempDir()
	other := start(t, "--url", url, "run", "succession-demo", "--", "sleep", "1000")
	other.event("started")
	if code, _, stderr := here("--url", url, "demo"); code != ui.ExitFailed || !strings.Contains(stderr, "stand in line") {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
}

func TestDemoInterrupted(t *testing.T) {
	tmp := t.TempDir()
	cmd := command("demo", "--hold", "1h")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	p := startCommand(t, cmd)
	for {
		if line, ok := p.next(); !ok || strings.Contains(line, "5 joins") {
			break
		}
	}
	if left, _ := os.ReadDir(tmp); len(left) != 1 {
		t.Fatalf("temporary folders: %v, want 1", left)
	}
	p.signal(2)
	p.exits(130)
	if left, _ := os.ReadDir(tmp); len(left) != 0 {
		t.Errorf("the demo left %v behind", left)
	}
}

// A demo that cannot go on, as on a full disk, says why.
func TestDemoSaysWhatHoldsItUp(t *testing.T) {
	dir := t.TempDir()
	// A folder in the place of the file makes every write of the counter fail.
	obstacle := filepath.Join(dir, "@tmp-0000000000000000")
	if err := os.MkdirAll(filepath.Join(obstacle, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := start(t, "demo", "--url", "local:"+dir, "--hold", "1ms")
	for {
		line, ok := p.next()
		if !ok {
			t.Fatal("the demo ended")
		}
		if strings.Contains(line, "1 tries again: ") && strings.Contains(line, obstacle) {
			break
		}
	}
	if err := os.RemoveAll(obstacle); err != nil {
		t.Fatal(err)
	}
	p.exits(0)
}
