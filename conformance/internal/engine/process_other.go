//go:build !unix

package engine

import (
	"errors"
	"os"
	"os/exec"
)

// ownGroup does nothing: on this system no process is stopped.
func ownGroup(*exec.Cmd) {}

// halt would stop a process. This system has no signal for that, so the harness lacks Process.
func halt(*os.Process) error    { return errors.ErrUnsupported }
func proceed(*os.Process) error { return errors.ErrUnsupported }
