package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// program runs a program, unless the same has passed in an earlier run.
func (r *report) program(ctx context.Context, s *schedule, p *program, at priority) {
	if n := missing(p.needs); n != nil {
		r.give(s, p, n.lacks())
		return
	}
	if s.passed.has(p.key, p.path) {
		r.before++
		s.end(p, false)
		return
	}
	if err := r.run(ctx, s, p, at); err != nil {
		r.problem(fmt.Sprintf("the tests of %s: %v", p.pkg, err))
	}
	s.end(p, false)
}

// environment is what programs and commands run in: without what holds for building alone, and without what says which tests
// are run, as this one may be a test itself.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, seenBy) || strings.HasPrefix(variable, "GOWORK=")
	})
}

// run runs one program. Its end counts once it has ended: a program that says PASS may
// fail afterwards.
func (r *report) run(ctx context.Context, s *schedule, p *program, at priority) error {
	// Parts of one program may run at the same time.
	logFile, err := os.CreateTemp(filepath.Dir(p.path), filepath.Base(p.path)+"-*.log")
	if err != nil {
		return err
	}
	log := logFile.Name()
	logFile.Close()
	defer os.Remove(log)
	tests := command(ctx, at, append([]string{p.path, "-test.v=test2json", "-test.paniconexit0", "-test.testlogfile=" + log}, p.flags...)...)
	tests.Dir = p.dir
	tests.Env = append(environment(), "PWD="+p.dir)
	tests.Env = append(tests.Env, p.env...)
	if at == idle {
		tests.Env = append(tests.Env, "GOMAXPROCS=1")
	}
	events := command(context.WithoutCancel(ctx), usual, "go", "tool", "test2json", "-t", "-p", p.pkg)
	stderr := r.out.lines("")
	defer stderr.Close()
	events.Stderr = stderr
	in, err := events.StdinPipe()
	if err != nil {
		return err
	}
	out, err := events.StdoutPipe()
	if err != nil {
		return err
	}
	if err := events.Start(); err != nil {
		return err
	}
	// Not the pipe itself, which what the tests have left behind would keep open beyond WaitDelay.
	merged := struct{ io.Writer }{in}
	tests.Stdout, tests.Stderr = merged, merged
	began := time.Now()
	ended := make(chan error, 1)
	go func() {
		err := tests.Run()
		in.Close()
		ended <- err
	}()
	end := event{Action: "fail", Package: p.pkg}
	readErr := read(ctx, out, func(e event) {
		if e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			end.Action = e.Action
			return
		}
		r.add(e)
	})
	err = <-ended
	if ctx.Err() != nil {
		fmt.Fprintf(r.out, "-     %s  interrupted, %d tests before\n", p.pkg, r.ran[p.pkg])
		return events.Wait()
	}
	if err != nil {
		end.Action = "fail"
		r.add(event{Action: "output", Package: p.pkg, Output: fmt.Sprintln(err)})
	}
	end.Elapsed = time.Since(began).Seconds()
	r.times.used(p.pkg, processors(tests.ProcessState))
	s.end(p, end.Action == "pass")
	r.add(end)
	var keepErr error
	if end.Action == "pass" && r.failed == 0 && len(r.calm.notJudged) == 0 && r.skips.other == 0 {
		var read []string
		if read, keepErr = s.passed.reads(log, p.dir); keepErr == nil {
			keepErr = s.passed.note(p.key, p.path, read)
		}
	}
	return errors.Join(readErr, events.Wait(), keepErr)
}

// read calls add for each event of a stream of JSON, until ctx ends: what fails then has been interrupted.
func read(ctx context.Context, in io.Reader, add func(event)) error {
	// A reader that has given up must not leave the other end writing for ever.
	defer func() { _, _ = io.Copy(io.Discard, in) }()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if jsonErr := json.Unmarshal(line, &e); jsonErr != nil {
				return fmt.Errorf("%q is not an event: %w", line, jsonErr)
			}
			if ctx.Err() == nil {
				add(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
