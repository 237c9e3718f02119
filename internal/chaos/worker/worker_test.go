//go:build linux

package worker_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/chaos/store"
	"github.com/succession-dev/succession/internal/chaos/worker"
	"github.com/succession-dev/succession/internal/history"
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
	h, err := history.Read(f)
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
