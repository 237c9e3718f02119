package child

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopts says that orphaned descendants become children of the guard.
const adopts = true

// adopt makes orphaned descendants children of this process (prctl(2)).
func adopt() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// fallBack makes the parent the one who inherits the command when the guard is
// killed, so that it can wait for the command's end.
func fallBack() { adopt() }

func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// executable is this process's own, even after its file was replaced or deleted.
func executable() (string, error) { return "/proc/self/exe", nil }

// killGroup kills the process group that a guard has left to this process, and
// blocks until none of it runs.
func killGroup(pgid int) {
	for {
		unix.Kill(-pgid, unix.SIGKILL)
		if _, err := unix.Wait4(-pgid, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// leftBehind sends sig to every descendant of the guard; once the command has
// ended its process group is no safe address any more.
func (g *guard) leftBehind(sig syscall.Signal) {
	for _, pid := range descendants(os.Getpid()) {
		syscall.Kill(pid, sig)
	}
}

// descendants returns the processes below root, parents before children. Those
// that start meanwhile may be missing.
func descendants(root int) []int {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := make(map[int][]int)
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(n.Name()); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// parentOf reads the parent's id from /proc/PID/stat (proc_pid_stat(5)): the
// second field after the command's name, which stands in parentheses and may hold
// parentheses itself.
func parentOf(pid string) (int, bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}
