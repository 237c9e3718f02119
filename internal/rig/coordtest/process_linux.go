package coordtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the child when this process ends, however
// it ends: go test kills a test binary that has run out of time. Linux takes the end of the thread that forked for that
// (prctl(2), PR_SET_PDEATHSIG).
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

// childrenOf returns the children of a process.
func childrenOf(pid int) (children []int, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range threads {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for field := range strings.FieldsSeq(string(b)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			children = append(children, child)
		}
	}
	return children, err
}

// killChildren kills the children of a process that is stopped. What it returns waits until they are gone, which is
// after their parent is.
func killChildren(pid int) (gone func()) {
	children, _ := childrenOf(pid) // if they cannot be listed, they end by themselves
	var open []int
	for _, child := range children {
		if fd, err := unix.PidfdOpen(child, 0); err == nil {
			open = append(open, fd)
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
	return func() {
		for _, fd := range open {
			for {
				if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); !errors.Is(err, unix.EINTR) {
					break
				}
			}
			unix.Close(fd)
		}
	}
}

// signalChildren sends a signal to the children of a process, which is stopped.
func signalChildren(pid int, signal syscall.Signal) error {
	children, err := childrenOf(pid)
	for _, child := range children {
		if e := syscall.Kill(child, signal); e != nil && e != syscall.ESRCH {
			err = errors.Join(err, e)
		}
	}
	return err
}
