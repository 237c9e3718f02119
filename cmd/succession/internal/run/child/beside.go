//go:build unix

package child

import (
	"os/exec"
	"sync"
	"syscall"
)

// beside has the ids of the processes of all Besides that run. Who holds it knows of all that this process has forked.
var beside = struct {
	sync.Mutex
	pids map[int]bool
}{pids: make(map[int]bool)}

// A Beside is a process that this one runs beside a command, in a process group of its own, because a terminal's signals are
// for the command. It is not killed in the place of what a guard has left when that was killed. What it has
// left in the background itself is.
type Beside struct{ cmd *exec.Cmd }

// StartBeside starts cmd. The caller must call Wait.
func StartBeside(cmd *exec.Cmd) (*Beside, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	beside.Lock()
	defer beside.Unlock()
	err := cmd.Start()
	if err == nil {
		beside.pids[cmd.Process.Pid] = true
	}
	return &Beside{cmd}, err
}

// Wait waits for the end of the process, as [exec.Cmd.Wait] does.
func (b *Beside) Wait() error {
	err := b.cmd.Wait()
	beside.Lock()
	defer beside.Unlock()
	delete(beside.pids, b.cmd.Process.Pid)
	return err
}

// Kill kills the process and what it has started in its process group.
func (b *Beside) Kill() { _ = b.signal() }

func (b *Beside) signal() error {
	if b.cmd.Process == nil { // it could not be started
		return syscall.ESRCH
	}
	return syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
}

// Clear kills what the process has left in its group. It must have ended. What this process has adopted of that is reaped.
func (b *Beside) Clear() {
	for b.signal() == nil { // while there is anybody
		if _, err := syscall.Wait4(-b.cmd.Process.Pid, nil, 0, nil); err != nil && err != syscall.EINTR {
			return // the rest is others'
		}
	}
}
