package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// A passed is a file of what has passed in earlier runs, so that a run of hours that was interrupted, or in which something
// has failed, can go on. Nothing stands in it that could not be judged. It has a [pass] in each line.
type passed struct {
	out  io.Writer
	root string // the folder of the repository
	tree string // the name that git has for all files of the commit
	rest string // the same of the files that no program has in it and whose reading no log tells, as servers read them

	mu    sync.Mutex
	file  string          // empty if nothing is noted
	known map[string]pass // what has passed in earlier runs, by key
}

// A pass says that a program or a command has passed, and what that depends on.
type pass struct {
	Key  string
	Read []string `json:",omitempty"` // files and folders that the program has read, from the root on; everything for a "."
	Of   string   // hash of the program, and of what it has read
}

// everything is what a command has read, and a program that builds others.
var everything = []string{"."}

// git returns what a command prints.
func git(args ...string) ([]byte, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out, nil
}

// tree returns the name that git has for all files of a commit. It fails if the files are not those of a commit.
func tree() (string, error) {
	changed, err := git("status", "--porcelain")
	if err != nil {
		return "", err
	}
	if len(changed) > 0 {
		return "", errors.New("something here is not committed")
	}
	name, err := git("rev-parse", "HEAD^{tree}")
	return strings.TrimSpace(string(name)), err
}

// openPassed reads the file, or begins it anew unless again is set. If the files are not those of a
// commit, nothing is noted, and again fails.
func openPassed(file string, again bool, out io.Writer) (*passed, error) {
	p := &passed{known: make(map[string]pass), out: out}
	var err error
	if p.tree, err = tree(); err != nil {
		if again {
			return nil, fmt.Errorf("there is no run to go on with: %w", err)
		}
		fmt.Fprintf(out, "this run cannot be gone on with: %v\n", err)
		return p, nil
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	p.root = strings.TrimSpace(string(root))
	files, err := git("-C", p.root, "ls-files", "-s")
	if err != nil {
		return nil, err
	}
	rest := sha256.New()
	for line := range bytes.Lines(files) {
		if name := bytes.TrimSpace(line); !bytes.HasSuffix(name, []byte(".go")) && !bytes.HasSuffix(name, []byte(".md")) {
			rest.Write(line)
		}
	}
	p.rest = hex.EncodeToString(rest.Sum(nil))
	p.file = file
	if !again {
		if err := os.Remove(p.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	b, err := os.ReadFile(p.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(b) {
		var one pass
		if json.Unmarshal(line, &one) == nil { // or the machine was switched off
			p.known[one.Key] = one
		}
	}
	return p, nil
}

// of returns the hash of what the program at a path depends on, and of what it reads. There is no program for a command.
func (p *passed) of(program string, read []string) (string, error) {
	if slices.Contains(read, ".") {
		return p.tree, nil
	}
	h := sha256.New()
	f, err := os.Open(program)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	fmt.Fprintf(h, "\n%s\n", p.rest)
	for _, name := range read {
		path := filepath.Join(p.root, name)
		names, err := os.ReadDir(path)
		if err == nil {
			fmt.Fprintf(h, "%s %v\n", name, names)
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		fmt.Fprintf(h, "%s %t %x\n", name, err == nil, sha256.Sum256(b))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// has reports whether what has that key has passed before, and would do and read the same again.
func (p *passed) has(key, program string) bool {
	before, known := p.known[key]
	if !known {
		return false
	}
	now, err := p.of(program, before.Read)
	return err == nil && now == before.Of
}

// note adds to the file what has passed in this run, unless somebody has changed files meanwhile.
func (p *passed) note(key, program string, read []string) error {
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
	of, err := p.of(program, read)
	if err != nil {
		return err
	}
	line, err := json.Marshal(pass{key, read, of})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(p.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return cmp.Or(err, f.Close())
}

// reads returns what a program that began in a folder has read of the repository, by the log that package testing keeps for go
// test: a line for each name that was opened or looked at. What has looked for Go builds programs, and may have read
// everything.
func (p *passed) reads(log, dir string) ([]string, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found := make(map[string]bool)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		op, name, _ := strings.Cut(lines.Text(), " ")
		if op != "open" && op != "stat" && op != "chdir" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if op == "chdir" {
			dir = name
			continue
		}
		if filepath.Base(name) == "go" && op == "stat" {
			return everything, nil
		}
		if rel, err := filepath.Rel(p.root, name); err == nil && filepath.IsLocal(rel) {
			found[rel] = true
		}
	}
	read := make([]string, 0, len(found))
	for name := range found {
		read = append(read, name)
	}
	slices.Sort(read)
	return read, lines.Err()
}

// leaveOut removes from the plan the commands that have passed before on this commit, and returns how many that are. One that
// makes something for others stays, as what it has made may have gone.
func (p *passed) leaveOut(plan *plan) (n int) {
	needed := slices.Clone(plan.before)
	for _, b := range plan.builds {
		needed = append(needed, b.needs...)
		for _, program := range b.programs {
			needed = append(needed, program.needs...)
		}
	}
	for i, list := range plan.makes {
		all := len(list)
		plan.makes[i] = slices.DeleteFunc(list, func(need *need) bool { return p.has(need.key(), "") && !slices.Contains(needed, need) })
		n += all - len(plan.makes[i])
	}
	return n
}
