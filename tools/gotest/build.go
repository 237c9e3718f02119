package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A program is the test program of one package, and the flags that it is run with.
type program struct {
	pkg, dir string // import path, folder
	path     string
	flags    []string
}

// A builder builds test programs.
type builder struct {
	*report
	bin string
}

// programs builds what an argument names, and returns the programs in that order.
func (b *builder) programs(arg string) ([]program, error) {
	words := strings.Fields(arg)
	if len(words) < 2 {
		return nil, fmt.Errorf("%q names no package", arg)
	}
	module, words := words[0], words[1:]
	flags := leading(words, true)
	words = words[len(flags):]
	packages := leading(words, false)
	found, err := b.build(module, flags, packages)
	for i := range found {
		found[i].flags = words[len(packages):]
	}
	return found, err
}

// leading returns the first of the words, up to one that is no flag, or that is one.
func leading(words []string, flags bool) []string {
	n := 0
	for n < len(words) && strings.HasPrefix(words[n], "-") == flags {
		n++
	}
	return words[:n]
}

// build has go test build the programs with the flags, and keep each in place of running
// it.
func (b *builder) build(module string, flags, packages []string) (found []program, err error) {
	// Programs are run again by their path, as by env, which takes a = for an assignment.
	bin := filepath.Join(b.bin, "with"+strings.NewReplacer("/", "-", "=", "-").Replace(strings.Join(flags, "")))
	list := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{.Dir}}"}, packages...)...)
	list.Dir = module
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", module, err)
	}
	var missing []string
	for line := range bytes.Lines(out) {
		pkg, dir, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		p := program{pkg: pkg, dir: dir, path: kept(bin, dir)}
		if found = append(found, p); !p.exists() {
			missing = append(missing, pkg)
		}
	}
	if len(missing) > 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		// Vet is a step of its own.
		args := slices.Concat([]string{"test", "-json", "-vet=off", "-count=1", "-exec", self + " keep " + bin}, flags, missing)
		cmd := exec.Command("go", args...)
		cmd.Dir = module
		cmd.Stderr = os.Stderr
		if err := b.builds(cmd); err != nil {
			return nil, fmt.Errorf("building in %s: %w", module, err)
		}
	}
	return slices.DeleteFunc(found, func(p program) bool { return !p.exists() }), nil // it has no tests
}

func (p program) exists() bool {
	_, err := os.Stat(p.path)
	return err == nil
}

// builds runs go test -json, and reports what does not build.
func (b *builder) builds(cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	before := b.failed
	readErr := read(out, func(e event) {
		if e.Action != "pass" && e.Action != "skip" {
			b.add(e)
		}
	})
	err = cmd.Wait()
	if b.failed > before {
		err = nil // that has been counted
	}
	return errors.Join(readErr, err)
}

// keep is what go test runs in place of a test program, in the folder of its package: it
// keeps the program.
func keep(bin, program string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	path := kept(bin, dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Link(program, path) // go test removes its own
}

func kept(bin, dir string) string { return filepath.Join(bin, dir) + ".test" }
