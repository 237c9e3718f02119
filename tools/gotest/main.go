// Command gotest builds tests, runs them, and ends with one line that counts them all:
//
//	gotest 'DIR [-FLAG...] PACKAGE... [-FLAG...]' ... [-- 'DIR ...' ...]
//
// The first word is the folder of a module. Flags before the packages are for go test, such
// as -race. Those after them are for the test programs, so that those of package testing
// begin with -test.
//
// All test programs are built before the first is run: tests of real coordinators must not
// wait for a linker. Of the programs two run at a time, in the order of the arguments.
// Beside them run those after --, one at a time, on one processor and with the lowest
// priority.
//
// It prints a line for each package, and the output of a test only if it fails. At the
// end it prints how long each package took, the slowest tests, and once more the gist of
// what has failed. It exits with 1 when anything has failed, and when nothing was tested.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
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
		fmt.Fprintln(os.Stderr, "usage: gotest 'DIR [-FLAG...] PACKAGE... [-FLAG...]' ... [-- 'DIR ...' ...]")
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

// runAll builds and runs what the arguments name.
func (r *report) runAll(args []string) error {
	first, beside := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		first, beside = args[:i], args[i+1:]
	}
	bin, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "gotest-") // as go test does, as a link does not leave a file system
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	b := builder{report: r, bin: bin}
	firstPrograms, err := b.programs(first)
	if err != nil {
		return err
	}
	besidePrograms, err := b.programs(beside)
	if err != nil {
		return err
	}
	if r.failed > 0 { // it does not build
		return nil
	}
	var lanes sync.WaitGroup
	for range 2 {
		lanes.Go(func() { r.lane(firstPrograms) })
	}
	lanes.Go(func() { r.lane(besidePrograms, "env", "GOMAXPROCS=1", "nice", "-n", "19") })
	lanes.Wait()
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
