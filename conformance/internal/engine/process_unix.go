//go:build unix

package engine

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives the process a group of its own. It ends when its standard input does,
// but not while it is stopped: the kernel continues it and hangs up on it when the
// end of this process leaves a group an orphan that has a stopped member (setpgid(2)).
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
}

// halt stops a process, and proceed lets it go on.
func halt(p *os.Process) error    { return p.Signal(syscall.SIGSTOP) }
func proceed(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
