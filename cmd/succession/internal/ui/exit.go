package ui

import (
	"errors"
	"fmt"
	"io"
)

// Exit codes, apart from those of the command that run starts and 128+n where a
// signal ended it or us. 124 to 127 are as in timeout(1) and env(1), 75 is
// EX_TEMPFAIL of sysexits.h.
const (
	ExitNobody        = 1 // leader, resign
	ExitAbsent        = 1 // get, delete
	ExitNonconforming = 1 // conformance
	ExitRefused       = 1 // migrate, set, delete
	ExitLost          = 75
	ExitTimeout       = 124
	ExitFailed        = 125
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// An ExitError is an error that asks for an exit code; all others exit with
// [ExitFailed].
type ExitError struct {
	Code int
	Err  error // nil where everything has been said
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Asks reports whether err asks for an exit code.
func Asks(err error) bool { return errors.As(err, new(*ExitError)) }

// Exitf is an error with an exit code and a message.
func Exitf(code int, format string, args ...any) error {
	return &ExitError{code, fmt.Errorf(format, args...)}
}

// ExitCode reports err on w, on one line, and returns the exit code it asks for.
func ExitCode(err error, w io.Writer) int {
	if err == nil {
		return 0
	}
	code := ExitFailed
	if e := (*ExitError)(nil); errors.As(err, &e) {
		code = e.Code
		if e.Err == nil {
			err = nil
		}
	}
	if err != nil {
		fmt.Fprintln(w, "succession: "+OneLine(err.Error()))
	}
	return code
}
