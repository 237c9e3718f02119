package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A passed is a file of what has passed in earlier runs of the very same files, so that a run of hours that was interrupted can
// go on. Nothing stands in it that could not be judged. It has a line for each key.
type passed struct {
	file string // empty if nothing is kept

	mu   sync.Mutex
	keys map[string]bool // of earlier runs
}

// openPassed reads the file, or begins it anew unless again is set. Where there is no file nothing has passed.
func openPassed(file string, again bool) (*passed, error) {
	p := &passed{file: file, keys: make(map[string]bool)}
	if file == "" {
		return p, nil
	}
	if !again {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		if key, whole := strings.CutSuffix(line, "\n"); whole { // or the machine was switched off
			p.keys[key] = true
		}
	}
	return p, nil
}

// note adds to the file what has passed in this run.
func (p *passed) note(key string) error {
	if p.file == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(p.file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(p.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, key)
	return cmp.Or(err, f.Close())
}

// leaveOut removes from the plan what has passed before, and returns how many programs and commands that are. A command that
// makes something for others stays, as what it has made may have gone.
func (p *passed) leaveOut(plan *plan) (n int) {
	out := func(program *program) bool { return p.keys[program.key] }
	plan.then = slices.DeleteFunc(plan.then, out)
	for _, l := range plan.lanes {
		l.programs = slices.DeleteFunc(l.programs, out)
	}
	needed := slices.Clone(plan.before)
	for _, b := range plan.builds {
		all := len(b.programs)
		b.programs = slices.DeleteFunc(b.programs, out)
		n += all - len(b.programs)
		needed = append(needed, b.needs...)
		for _, left := range b.programs {
			needed = append(needed, left.needs...)
		}
	}
	plan.builds = slices.DeleteFunc(plan.builds, func(b *build) bool { return len(b.programs) == 0 })
	for i, list := range plan.makes {
		all := len(list)
		plan.makes[i] = slices.DeleteFunc(list, func(need *need) bool { return p.keys[need.key()] && !slices.Contains(needed, need) })
		n += all - len(plan.makes[i])
	}
	return n
}
