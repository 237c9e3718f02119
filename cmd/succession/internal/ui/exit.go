package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// Exit codes, apart from those of the command that run starts and 128+n where a
// signal ended it or us. 124 to 127 are as in timeout(1) and env(1), 75 is
// EX_TEMPFAIL of sysexits.h.
const (
	exitNobody        = 1 // leader, resign
	exitNonconforming = 1 // conformance
	exitLost          = 75
	exitTimeout       = 124
	exitFailed        = 125
	exitNotExecutable = 126
	exitNotFound      = 127
)

// exitError is an error that asks for an exit code; all others exit with
// exitFailed.
type exitError struct {
	code int
	err  error // nil where everything has been said
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitf is an error with an exit code and a message.
func exitf(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

// exitCode reports err on w, on one line, and returns the exit code it asks for.
func exitCode(err error, w io.Writer) int {
	if err == nil {
		return 0
	}
	code := exitFailed
	if e := (*exitError)(nil); errors.As(err, &e) {
		code = e.code
		if e.err == nil {
			err = nil
		}
	}
	if err != nil {
		fmt.Fprintln(w, "succession: "+oneLine(err.Error()))
	}
	return code
}

func oneLine(s string) string {
	return visible(strings.NewReplacer("\n\n", "; ", "\n", "; ", "\t", "").Replace(strings.TrimSpace(s)))
}

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ sig os.Signal }

func (i interrupted) Error() string { return "interrupted by " + signalName(i.sig) }

// signalExit is the exit code of a process that sig ended.
func signalExit(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return exitFailed
}
