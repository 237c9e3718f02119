package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// build builds the programs of one argument, and reports each that cannot be built.
func (r *report) build(ctx context.Context, s *schedule, b *build) {
	if n := missing(b.needs); n != nil {
		for _, p := range b.programs {
			r.give(s, p, n.lacks())
		}
		return
	}
	// Programs are run again by their path, as by env, which takes a = for an assignment.
	bin := filepath.Join(s.bin, "with"+strings.NewReplacer("/", "-", "=", "-").Replace(strings.Join(b.flags, "")))
	left := make(map[string]*program) // by import path
	for _, p := range b.programs {
		if path := kept(bin, p.dir); exists(path) {
			s.isBuilt(p, path)
		} else {
			left[p.pkg] = p
		}
	}
	if len(left) == 0 {
		return
	}
	err := r.builds(ctx, b, bin, left, func(e event) {
		p := left[e.Package]
		switch {
		case p == nil || e.Test != "":
		case e.Action == "pass" || e.Action == "skip":
			s.isBuilt(p, kept(bin, p.dir))
			delete(left, e.Package)
		case e.Action == "fail":
			s.end(p, false)
			delete(left, e.Package)
		}
	})
	for _, p := range b.programs {
		if left[p.pkg] != nil && ctx.Err() == nil {
			r.give(s, p, fmt.Errorf("go test has not built it: %v", err))
		}
	}
}

// give reports a program that cannot be built or run, once.
func (r *report) give(s *schedule, p *program, why error) {
	if s.end(p, false) {
		r.say(fmt.Sprintf("FAIL  %s: not tested: %v", p.pkg, why))
	}
}

// builds has go test build what is left of the programs, in their order, and keep each in place of
// running it. It calls seen with each event before it is reported.
func (r *report) builds(ctx context.Context, b *build, bin string, left map[string]*program, seen func(event)) error {
	// Vet is a step of its own.
	argv := append([]string{"go", "test", "-json", "-vet=off", "-count=1", "-exec", executable() + " keep " + bin}, b.flags...)
	for _, p := range b.programs {
		if left[p.pkg] != nil {
			argv = append(argv, p.pkg)
		}
	}
	cmd := command(ctx, behind, argv...)
	cmd.Dir = b.module
	stderr := r.out.lines("")
	defer stderr.Close()
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := read(ctx, out, func(e event) {
		seen(e)
		if e.Action != "pass" && e.Action != "skip" {
			r.add(e)
		}
	})
	err = errors.Join(readErr, cmd.Wait())
	const building = "building the tests"
	r.times.took(timed{name: building, seconds: time.Since(began).Seconds()})
	r.times.used(building, processors(cmd.ProcessState))
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
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
