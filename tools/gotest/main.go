// Command gotest runs go test, once for each of its arguments, one after the other, and
// ends with one line that counts the tests of all of them:
//
//	gotest 'DIR ARGUMENT...' ...
//
// The first word is the folder in which go test is run, the others are its arguments.
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
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: gotest 'DIR ARGUMENT...' ...")
		os.Exit(2)
	}
	r := newReport(os.Stdout)
	for _, arg := range os.Args[1:] {
		dir, args, _ := strings.Cut(arg, " ")
		if err := run(r, dir, strings.Fields(args)); err != nil {
			r.problem(fmt.Sprintf("go test in %s: %v", dir, err))
		}
	}
	if !r.close() {
		os.Exit(1)
	}
}

// run runs go test in one module. What go test itself says goes to standard error.
func run(r *report, dir string, args []string) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	failed := r.failed
	readErr := r.read(out)
	// A reader that has given up must not leave go test writing for ever.
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && r.failed > failed {
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
