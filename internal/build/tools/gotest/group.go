package main

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// command returns a command with a process group of its own. All of it ends when ctx does, compilers and servers too: it is
// interrupted, so that what has temporary files can remove them, and a little later killed.
func command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Minute // for processes that it has left behind
	cmd.Cancel = func() error {
		const pause, pauses = 50 * time.Millisecond, 60
		group := -cmd.Process.Pid
		err := syscall.Kill(group, syscall.SIGINT)
		for range pauses {
			if syscall.Kill(group, 0) == syscall.ESRCH {
				return err
			}
			time.Sleep(pause)
		}
		return syscall.Kill(group, syscall.SIGKILL)
	}
	return cmd
}
