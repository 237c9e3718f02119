package coordtest

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the child when this process ends, however
// it ends: go test kills a test binary that has run out of time.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// waitStopped blocks until the child has stopped or has ended. It leaves the
// child's status for exec.Cmd.Wait to collect.
func waitStopped(pid int) error {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait for process %d to stop: %w", pid, err)
		case info.Code != cldStopped:
			return errNotRunning
		}
		return nil
	}
}

// cldStopped is CLD_STOPPED of siginfo(3).
const cldStopped = 5
