//go:build linux

package worker_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence/notes"
	"github.com/succession-dev/succession/internal/rig/store"
	"github.com/succession-dev/succession/internal/rig/worker"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		os.Exit(worker.Main(os.Args[2:], os.Stdin))
	}
	os.Exit(m.Run())
}

// A worker leads, resigns when it is told to, leads again, ends when its input does, and
// has written down all of that.
func TestWorker(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := worker.Config{
		URL: "local:" + filepath.Join(dir, "local"), ID: "c1", Elections: []string{"a", "b"}, Store: filepath.Join(dir, "store"),
		Log: filepath.Join(dir, "c1.1"), Origin: worker.Now(), Pace: 20 * time.Millisecond,
	}
	cmd := exec.CommandContext(t.Context(), exe, append([]string{"worker"}, cfg.Args()...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 2 {
		for won := 0; won < len(cfg.Elections) && lines.Scan(); {
			if strings.Contains(lines.Text(), `"event":"won"`) {
				won++
			}
		}
		if _, err := io.WriteString(in, worker.Resign+"\n"); err != nil {
			t.Fatalf("%v\n%s", err, &complaint)
		}
	}
	in.Close()
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &complaint)
	}

	f, err := os.Open(cfg.Log + ".history.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := notes.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if found := h.Check(history.Rules{}); len(found) > 0 {
		t.Error(found)
	}
	ops, err := worker.ReadOps(cfg.Log + ".ops.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, election := range cfg.Elections {
		terms := h.Terms(election)
		if len(terms) < 2 || slices.ContainsFunc(terms, func(t history.Term) bool { return t.Open }) {
			t.Errorf("%s has the terms %+v", election, terms)
		}
		writes, err := store.Read(filepath.Join(cfg.Store, election))
		if err != nil {
			t.Error(err)
		}
		told := make(map[string]int)
		for _, op := range ops {
			if op.Election != election {
				continue
			}
			if op.Outcome != worker.OK && op.To > 0 && op.Outcome != worker.Unknown {
				t.Errorf("nobody else is there, and a write fails: %+v", op)
			}
			if op.Outcome == worker.OK {
				told[op.Target]++
			}
		}
		if told[worker.File] != len(writes) || told[worker.Counter] == 0 || told[worker.Last] == 0 {
			t.Errorf("%s: writes that succeeded are %v, and the store has %d", election, told, len(writes))
		}
	}
}

// A leader that is killed has left its last act, which is after its win.
func TestKilled(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := worker.Config{
		URL: "local:" + filepath.Join(dir, "local"), ID: "c1", Elections: []string{"a", "b"}, Store: filepath.Join(dir, "store"),
		Log: filepath.Join(dir, "c1.1"), Origin: worker.Now(), Pace: 20 * time.Millisecond,
	}
	cmd := exec.CommandContext(t.Context(), exe, append([]string{"worker"}, cfg.Args()...)...)
	in, err := cmd.StdinPipe() // its end would be a reason to resign
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for won, lines := 0, bufio.NewScanner(out); won < len(cfg.Elections) && lines.Scan(); {
		if strings.Contains(lines.Text(), `"event":"won"`) {
			won++
		}
	}
	// Acts go on as long as nothing stops them.
	seen := worker.Clock(cfg.Origin)()
	var acts map[string]worker.Act
	for acts["a"].At < seen || acts["b"].At < seen {
		if acts, err = worker.ReadActs(cfg.Log+".acts", cfg.Elections); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if acts, err = worker.ReadActs(cfg.Log+".acts", cfg.Elections); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(cfg.Log + ".history.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := notes.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, election := range cfg.Elections {
		terms := h.Terms(election)
		if len(terms) != 1 || !terms[0].Open {
			t.Fatalf("%s has the terms %+v, and its leader was killed", election, terms)
		}
		if act := acts[election]; act.Token != terms[0].Token || act.At < seen || act.At < terms[0].From {
			t.Errorf("the last act in %s is %+v, of the term %+v", election, act, terms[0])
		}
	}
}

// A process may have acted in a later election and not in an earlier one, or nowhere.
func TestReadActs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "acts")
	act := fmt.Sprintf("%020d %019d %019d\n", 7, 8, 9)
	none := strings.Repeat("\x00", len(act))
	want := worker.Act{Token: 7, At: 8, Deadline: 9}
	tests := []struct {
		name, file string
		want       map[string]worker.Act
		bad        bool
	}{
		{"none", "", map[string]worker.Act{}, false},
		{"both", act + act, map[string]worker.Act{"a": want, "b": want}, false},
		{"the second", none + act, map[string]worker.Act{"b": want}, false},
		{"of a third", act + act + act, nil, true},
		{"half", act[:30], nil, true},
	}
	if acts, err := worker.ReadActs(file, []string{"a", "b"}); err != nil || len(acts) > 0 {
		t.Errorf("no file has the acts %v, %v", acts, err)
	}
	for _, tt := range tests {
		if err := os.WriteFile(file, []byte(tt.file), 0o644); err != nil {
			t.Fatal(err)
		}
		acts, err := worker.ReadActs(file, []string{"a", "b"})
		if (err != nil) != tt.bad || !maps.Equal(acts, tt.want) {
			t.Errorf("%s: %v, %v; want %v", tt.name, acts, err, tt.want)
		}
	}
}

// A worker that cannot do what it is there for says so and fails.
func TestFails(t *testing.T) {
	commands, end := io.Pipe() // their end would be a reason to end well
	defer end.Close()
	dir := t.TempDir()
	cfg := worker.Config{URL: "nowhere:x", ID: "c1", Elections: []string{"a"}, Store: dir, Log: filepath.Join(dir, "log")}
	if code := worker.Main(cfg.Args(), commands); code != 1 {
		t.Errorf("a worker without a backend exits with %d", code)
	}
	if code := worker.Main([]string{"-url=local:" + dir}, commands); code != 1 {
		t.Errorf("a worker that is told nothing exits with %d", code)
	}
}

// The log of a process that was killed ends anywhere.
func TestReadOps(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ops")
	begun := `{"n":1,"from":5,"election":"a","candidate":"c","target":"counter","token":7,"seq":1,"value":"1 7 1"}` + "\n"
	ended := `{"n":1,"to":9,"outcome":"ok","version":3}` + "\n"
	tests := []struct {
		log  string
		want []worker.Outcome
		bad  bool
	}{
		{"", nil, false},
		{begun, []worker.Outcome{worker.Unknown}, false},
		{begun + ended, []worker.Outcome{worker.OK}, false},
		{begun + ended[:20], []worker.Outcome{worker.Unknown}, false},
		{begun[:30] + "\n" + ended, nil, true},
		{ended, nil, true},
	}
	for _, tt := range tests {
		if err := os.WriteFile(file, []byte(tt.log), 0o644); err != nil {
			t.Fatal(err)
		}
		ops, err := worker.ReadOps(file)
		var got []worker.Outcome
		for _, op := range ops {
			got = append(got, op.Outcome)
		}
		if (err != nil) != tt.bad || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, error %v; want %v", fmt.Sprintf("%q", tt.log), got, err, tt.want)
		}
	}
}
