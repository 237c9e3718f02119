package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// What is interrupted leaves the figures that were measured before.
func TestInterrupted(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "costs.json")
	before := &figure{Measure: failover, Coordinator: candidate.Local, Library: candidate.Ours, N: 1, Times: []time.Duration{1}}
	if err := (&book{Figures: []*figure{before}}).save(kept); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := command(ctx, []string{"-measure", failover, "-library", "^local: succession$", "-json", kept}, t.Output(), t.Output())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	b, err := load(kept)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Figures) != 1 || b.Figures[0].Error != "" || len(b.Figures[0].Times) != 1 {
		t.Errorf("the file has %+v, want %+v", b.Figures[0], before)
	}
}

// Whoever has the old file open goes on reading that: a new one takes its place as a whole.
func TestSaveReplaces(t *testing.T) {
	dir := t.TempDir()
	kept, old := filepath.Join(dir, "costs.json"), filepath.Join(dir, "old")
	if err := errors.Join(os.WriteFile(kept, []byte("old"), 0o600), os.Link(kept, old), new(book).save(kept)); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(old); err != nil || string(b) != "old" {
		t.Errorf("the old file has become %q, %v", b, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Errorf("the folder has %v, %v", names, err)
	}
}
