package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A passed is a file of what has passed in earlier runs on the same commit, so that a run of hours that was interrupted can
// go on. Nothing stands in it that could not be judged. It has a line for each key.
type passed struct {
	out  io.Writer
	tree string // of the commit

	mu   sync.Mutex
	file string          // empty if nothing is noted
	keys map[string]bool // of earlier runs
}

// tree returns the name that git has for all files of a commit. It fails if the files are not those of a commit.
func tree() (string, error) {
	changed, err := exec.Command("git", "status", "--porcelain").Output()
	if err != nil {
		return "", fmt.Errorf("git status: %w", err)
	}
	if len(changed) > 0 {
		return "", errors.New("something here is not committed")
	}
	name, err := exec.Command("git", "rev-parse", "HEAD^{tree}").Output()
	return strings.TrimSpace(string(name)), err
}

// openPassed reads the file of the present commit in a folder, or begins it anew unless again is set. If the files are not those of a
// commit, nothing is noted, and again fails.
func openPassed(dir string, again bool, out io.Writer) (*passed, error) {
	p := &passed{keys: make(map[string]bool), out: out}
	var err error
	if p.tree, err = tree(); err != nil {
		if again {
			return nil, fmt.Errorf("there is no run to go on with: %w", err)
		}
		fmt.Fprintf(out, "this run cannot be gone on with: %v\n", err)
		return p, nil
	}
	p.file = filepath.Join(dir, p.tree)
	if !again {
		if err := os.Remove(p.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	b, err := os.ReadFile(p.file)
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

// note adds to the file what has passed in this run, unless somebody has changed files meanwhile.
func (p *passed) note(key string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == "" {
		return nil
	}
	if now, err := tree(); err != nil || now != p.tree {
		fmt.Fprintln(p.out, "what passes from now on is not noted: the files are not those of the commit any more")
		p.file = ""
		return nil
	}
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
	plan.alone = slices.DeleteFunc(plan.alone, out)
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
