// Command gotest builds tests, runs them, and ends with one line that counts them all:
//
//	gotest LANE [-- LANE]... [--idle LANE]... [--then LIST]
//
// A lane is a list of arguments 'DIR [-FLAG...] PACKAGE... [-FLAG...]'. The first word is the
// folder of a module. Flags before the packages are for go test, such as -race. Those after
// them are for the test programs, so that those of package testing begin with -test.
//
// All test programs are built before the first is run: tests of real coordinators must not
// wait for a linker. The lanes run beside each other. Each runs its programs one at a time, in
// the order of its arguments. A lane after --idle runs on one processor and with the lowest
// priority. The programs after --then are for any lane that has ended, one at a time, and have
// the usual priority.
//
// It prints a line for each package, the output of a test only if it fails, and why a test
// was skipped, unless a rule of the conformance suite is impossible there. At the end it prints
// how long each package took, the slowest tests, and once more the gist of what has failed. It
// exits with 1 when anything has failed, and when nothing was tested.
package main

import (
	"fmt"
	"io"
	"os"
	"sync"
)

func main() {
	if len(os.Args) > 3 && os.Args[1] == "keep" {
		if err := keep(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: gotest 'DIR [-FLAG...] PACKAGE... [-FLAG...]' ... [-- 'DIR ...' ...] [--idle 'DIR ...' ...] [--then 'DIR ...' ...]")
		os.Exit(2)
	}
	total := newReport(&lockedWriter{w: os.Stdout})
	if err := total.runAll(os.Args[1:]); err != nil {
		total.problem(err.Error())
	}
	if !total.close() {
		os.Exit(1)
	}
}

// A lane is a list of programs that run one after the other.
type lane struct {
	by       []string // the command by which each is run
	programs []program
}

// runAll builds and runs what the arguments name.
func (r *report) runAll(args []string) error {
	bin, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "gotest-") // as go test does, as a link does not leave a file system
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	b := builder{report: r, bin: bin}
	lanes, then := []lane{{}}, lane{}
	last := &lanes[0]
	for _, arg := range args {
		switch arg {
		case "--":
			lanes = append(lanes, lane{})
			last = &lanes[len(lanes)-1]
		case "--idle":
			lanes = append(lanes, lane{by: []string{"env", "GOMAXPROCS=1", "nice", "-n", "19"}})
			last = &lanes[len(lanes)-1]
		case "--then":
			last = &then
		default:
			programs, err := b.programs(arg)
			if err != nil {
				return err
			}
			last.programs = append(last.programs, programs...)
		}
	}
	if r.failed > 0 { // it does not build
		return nil
	}
	left := make(chan program, len(then.programs))
	for _, p := range then.programs {
		left <- p
	}
	close(left)
	var running sync.WaitGroup
	for _, l := range lanes {
		running.Go(func() {
			for _, p := range l.programs {
				r.program(p, l.by)
			}
			for p := range left {
				r.program(p, nil)
			}
		})
	}
	running.Wait()
	return nil
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
