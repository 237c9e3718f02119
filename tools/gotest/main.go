// Command gotest runs go test, once for each of its arguments, and ends with one line that
// counts the tests of all of them:
//
//	gotest 'DIR ARGUMENT...' ... [-- 'DIR ARGUMENT...' ...]
//
// The first word is the folder in which go test is run, the others are its arguments. One
// is run after the other. Those after -- are run beside the first, on one processor and
// with the lowest priority: they may wait, as tests of real coordinators may not.
//
// It prints a line for each package, and the output of a test only if it fails. At the
// end it prints how long each package took, the slowest tests, and once more the gist of
// what has failed. It exits with 1 when anything has failed, and when nothing was tested.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: gotest 'DIR ARGUMENT...' ... [-- 'DIR ARGUMENT...' ...]")
		os.Exit(2)
	}
	first, second := os.Args[1:], []string(nil)
	if i := slices.Index(first, "--"); i >= 0 {
		first, second = first[:i], first[i+1:]
	}
	total := newReport(&lockedWriter{w: os.Stdout})
	var lanes sync.WaitGroup
	lanes.Go(func() { total.lane(first) })
	lanes.Go(func() { total.lane(second, "env", "GOMAXPROCS=1", "nice", "-n", "19") })
	lanes.Wait()
	if !total.close() {
		os.Exit(1)
	}
}

// A lockedWriter is for several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// lane runs go test for each of the arguments, and takes over what is found. It may run
// beside another.
func (r *report) lane(args []string, by ...string) {
	for _, arg := range args {
		dir, args, _ := strings.Cut(arg, " ")
		one := newReport(r.out)
		if err := run(one, dir, strings.Fields(args), by...); err != nil {
			one.problem(fmt.Sprintf("go test in %s: %v", dir, err))
		}
		r.merge(one)
	}
}

// run runs go test in one module, by way of another command where one is given. What go
// test itself says goes to standard error.
func run(r *report, dir string, args []string, by ...string) error {
	argv := slices.Concat(by, []string{"go", "test", "-json"}, args)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := r.read(out)
	// A reader that has given up must not leave go test writing for ever.
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && r.failed > 0 {
		err = nil // the failure has been counted
	}
	return errors.Join(readErr, err)
}

// read takes the events of one go test -json.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if jsonErr := json.Unmarshal(line, &e); jsonErr != nil {
				return fmt.Errorf("%q is not an event: %w", line, jsonErr)
			}
			r.add(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
