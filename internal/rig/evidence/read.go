//go:build linux

package evidence

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence/notes"
	"github.com/succession-dev/succession/internal/rig/store"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// Read reads what a run has written to its folder: everything but what the guarded
// records held at the end, and the bounds.
func Read(dir string, elections []string) (e Evidence, err error) {
	if e.History, err = readHistories(dir, elections); err != nil {
		return e, err
	}
	if e.Ops, err = readOps(dir); err != nil {
		return e, err
	}
	e.Stores = make(map[string][]store.Write)
	for _, election := range elections {
		if e.Stores[election], err = store.Read(filepath.Join(dir, "store", election)); err != nil {
			return e, err
		}
	}
	return e, nil
}

// readHistories returns the notes of all workers and of the nemesis as one history.
func readHistories(dir string, elections []string) (*history.History, error) {
	const suffix = ".history.jsonl"
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	var all []*history.History
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		h, err := notes.Read(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		acts, err := worker.ReadActs(strings.TrimSuffix(name, suffix)+".acts", elections)
		if err != nil {
			return nil, err
		}
		all = append(all, h, ends(h, acts))
	}
	return history.Merge(all...), nil
}

// ends returns the ends of the terms of which a process that was killed has noted none:
// its last acts.
func ends(h *history.History, acts map[string]worker.Act) *history.History {
	out := new(history.History)
	for _, e := range h.Events {
		act := acts[e.Election]
		if e.Kind != history.Won || e.Token != act.Token {
			continue
		}
		noted := slices.ContainsFunc(h.Events, func(o history.Event) bool {
			return (o.Kind == history.CheckFailed || o.Kind == history.Resigned) && o.Election == e.Election && o.Token == e.Token
		})
		if !noted {
			e.Kind, e.At, e.Led, e.Deadline, e.Why = history.Ended, act.At, act.At, act.Deadline, "its process was killed"
			out.Events = append(out.Events, e)
		}
	}
	return out
}

// readOps returns the writes of all workers.
func readOps(dir string) ([]worker.Op, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.ops.jsonl"))
	if err != nil {
		return nil, err
	}
	var all []worker.Op
	for _, name := range files {
		ops, err := worker.ReadOps(name)
		if err != nil {
			return nil, err
		}
		all = append(all, ops...)
	}
	return all, nil
}

// Write writes the history and the summary of a run to its folder, for people.
func (e *Evidence) Write(dir, summary string) error {
	if err := Create(dir, "history.jsonl", e.History.Write); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "summary.txt"), []byte(summary), 0o644)
}

// Create creates a file in a folder, with what write writes.
func Create(dir, name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	defer f.Close()
	return write(f)
}
