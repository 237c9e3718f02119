//go:build !unix

package engine

import (
	"errors"
	"os"
	"os/exec"
)

// ownGroup does nothing here, where nothing stops a process.
func ownGroup(*exec.Cmd) {}

// halt stops a process, for which there is no signal here; the harness lacks Process.
func halt(*os.Process) error    { return errors.ErrUnsupported }
func proceed(*os.Process) error { return errors.ErrUnsupported }
