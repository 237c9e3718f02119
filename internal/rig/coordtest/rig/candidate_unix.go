//go:build unix

package rig

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the process a group of its own. A candidate ends when its standard
// input does, but not while it is stopped: the kernel continues it, and hangs up on
// it, when the parent's end leaves its group an orphan with a member that is stopped
// (setpgid(2)).
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
