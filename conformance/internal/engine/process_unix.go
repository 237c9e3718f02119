//go:build unix

package engine

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives the process a process group of its own, so that it does not outlive this
// process while it is stopped. It ends with its standard input, but a stopped process does not
// notice that. If the end of this process orphans a process group with a stopped member, the
// kernel sends SIGHUP and SIGCONT to the group (setpgid(2)).
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
}

// halt stops a process, and proceed continues it.
func halt(p *os.Process) error    { return p.Signal(syscall.SIGSTOP) }
func proceed(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
