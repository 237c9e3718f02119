package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A stress is one test, and how it is repeated.
type stress struct {
	name               string // with its subtests
	runs, atOnce, load int
	out                io.Writer

	dir, binary string // where the test is run, and what
}

// build finds the package of the test, in the folder in, which may be that of another module, and builds its tests with
// the race detector. With /... at its end, in stands for all packages of its module below it.
func (s *stress) build(ctx context.Context, in string) error {
	dir, pattern := in, "."
	if below, all := strings.CutSuffix(in, "/..."); all {
		dir, pattern = below, "./..."
	}
	list := exec.CommandContext(ctx, "go", "list", "-C", dir, "-f", "{{.Dir}}", pattern)
	list.Stderr = os.Stderr
	dirs, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list %s: %w", in, err)
	}
	test, _, _ := strings.Cut(s.name, "/")
	var found []string
	for _, dir := range strings.Fields(string(dirs)) {
		has, err := declares(dir, test)
		if err != nil {
			return err
		}
		if has {
			found = append(found, dir)
		}
	}
	switch len(found) {
	case 0:
		return fmt.Errorf("no package of %s has a test %s", in, test)
	case 1:
		s.dir = found[0]
	default:
		return fmt.Errorf("%d packages have a test %s; say which by -in:\n%s", len(found), test, strings.Join(found, "\n"))
	}
	f, err := os.CreateTemp("", "stress-*.test")
	if err != nil {
		return err
	}
	f.Close()
	s.binary = f.Name()
	build := exec.CommandContext(ctx, "go", "test", "-race", "-c", "-o", s.binary, ".")
	build.Dir, build.Stdout, build.Stderr = s.dir, os.Stderr, os.Stderr
	return build.Run()
}

// declares reports whether the tests in a folder have a function of that name.
func declares(dir, test string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return false, err
		}
		if bytes.Contains(text, []byte("\nfunc "+test+"(")) {
			return true, nil
		}
	}
	return false, err
}

// pattern is the -run of just that test.
func (s *stress) pattern() string {
	parts := strings.Split(s.name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// repeat runs the test until it has been run as often as asked, or ctx ends, and returns
// how many runs have failed.
func (s *stress) repeat(ctx context.Context) (failed int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for range s.load {
		go spin(ctx)
	}
	folder := ""
	done, unjudged, began := 0, 0, time.Now()
	tell := func(end string) {
		if unjudged > 0 {
			end = fmt.Sprintf("; in %d more something was not judged, as the machine was busy", unjudged) + end
		}
		fmt.Fprintf(s.out, "%s: %d of %d runs failed (%.1f %%), %v%s\n",
			s.name, failed, done, 100*float64(failed)/float64(max(1, done)), time.Since(began).Round(time.Second), end)
	}
	var mu sync.Mutex
	progress := time.AfterFunc(0, func() {})
	progress = time.AfterFunc(10*time.Second, func() {
		mu.Lock()
		defer mu.Unlock()
		tell(" so far")
		progress.Reset(10 * time.Second)
	})
	defer progress.Stop()
	var workers sync.WaitGroup
	left := make(chan struct{}, s.runs)
	for range s.runs {
		left <- struct{}{}
	}
	close(left)
	for range s.atOnce {
		workers.Go(func() {
			for range left {
				output, ok, err := s.run(ctx)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				if err == nil && !ok {
					failed++
					if folder == "" {
						folder, err = os.MkdirTemp("", "stress-failed-")
					}
					if err == nil {
						err = os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.log", failed)), output, 0o644)
					}
				}
				if ok && bytes.Contains(output, []byte("calm: not judged: ")) { // see package calm
					unjudged++
				} else {
					done++
				}
				mu.Unlock()
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	workers.Wait()
	progress.Stop()
	mu.Lock()
	defer mu.Unlock()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return failed, cause
	}
	end := ""
	if folder != "" {
		end = "; what they printed is in " + folder
	}
	tell(end)
	if done == 0 && unjudged > 0 {
		return failed, errors.New("no run says anything: the machine was too busy")
	}
	return failed, nil
}

// run runs the test once. err is that nothing was run.
func (s *stress) run(ctx context.Context) (output []byte, ok bool, err error) {
	cmd := exec.CommandContext(ctx, s.binary, "-test.v", "-test.count=1", "-test.run", s.pattern())
	cmd.Dir = s.dir
	output, failed := cmd.CombinedOutput()
	if !bytes.Contains(output, []byte("=== RUN   "+s.name+"\n")) && failed == nil {
		return output, false, fmt.Errorf("there is no test %s in %s", s.name, s.dir)
	}
	return output, failed == nil, nil
}

// spin keeps a processor busy until ctx ends.
func spin(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		for i := range 1000 {
			n += i
		}
	}
}
