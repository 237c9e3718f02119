package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// clockID is the clock of [Now]: it is the same for all processes, and goes on while
// the machine is suspended (clock_gettime(2)).
const clockID = unix.CLOCK_BOOTTIME

// adopts says that orphaned descendants become children of the guard.
const adopts = true

// adopt makes orphaned descendants children of this process (prctl(2)).
func adopt() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// fallBack makes the parent the one who inherits the command when the guard is
// killed, so that it can wait for the command's end; noFallBack ends that, as nobody would
// reap what comes later.
func fallBack()   { adopt() }
func noFallBack() { unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }

func commandAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// executable is this process's own, even after its file was replaced or deleted.
func executable() (string, error) { return "/proc/self/exe", nil }

// killLeft kills what a guard has left to this process when it died. born is when the guard
// was born: killLeft takes the children of this process that are no older, and their
// descendants. It blocks until none of them runs.
func killLeft(_ int, born uint64) {
	for {
		left := descendants(os.Getpid(), born)
		if len(left) == 0 {
			return
		}
		for _, p := range left {
			p.signal(unix.SIGKILL)
		}
		unix.Wait4(left[0].pid, nil, 0, nil)
	}
}

// leftBehind sends sig to every descendant of the guard, but for those in the command's process group if
// others is true. Once the command has ended, that group is no safe address any more.
func (g *guard) leftBehind(sig syscall.Signal, others bool) {
	for _, p := range descendants(os.Getpid(), 0) {
		if group, err := syscall.Getpgid(p.pid); !others || err == nil && group != g.pid {
			g.told(p.pid, p.signal(sig))
		}
	}
}

// A process is one that had the id when it was born, at that tick of the clock. Its parent may have collected it since, and
// another process may have the id.
type process struct {
	pid  int
	born uint64
}

// openProcess is pidfd_open(2). A test may set it.
var openProcess = unix.PidfdOpen

// signal sends sig to the process, and to no other that has its id by now. A descriptor of the process stays its own, so
// what is seen of the id after that was opened is true of it. Kernels before 5.3, and some sandboxes, have no
// such descriptors; there, the id could change hands between the look and the signal.
func (p process) signal(sig syscall.Signal) error {
	fd, err := openProcess(p.pid, 0)
	if err == unix.ESRCH {
		return err
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if startTime(p.pid) != p.born {
		return unix.ESRCH
	}
	if err == nil {
		if err = unix.PidfdSendSignal(fd, sig, nil, 0); err != unix.ENOSYS {
			return err
		}
	}
	return unix.Kill(p.pid, sig)
}

// descendants returns the processes below root that were born at the tick born or later,
// parents before children, but for each [Beside] and what is below it. Those that start meanwhile may be missing.
func descendants(root int, born uint64) []process {
	beside.Lock()
	defer beside.Unlock()
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := make(map[int][]process)
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil {
			continue
		}
		if parent, at, ok := parentOf(pid); ok && at >= born && !beside.pids[pid] {
			children[parent] = append(children[parent], process{pid, at})
		}
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found
}

// startTime returns when a process was born, in ticks of the clock.
func startTime(pid int) uint64 {
	_, at, _ := parentOf(pid)
	return at
}

// parentOf reads a process's parent and its time of birth from /proc/PID/stat
// (proc_pid_stat(5)): the fields 4 and 22, counted from behind the command's name, which
// stands in parentheses and may hold parentheses itself.
func parentOf(pid int) (parent int, born uint64, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	return parseStat(stat)
}

func parseStat(stat []byte) (parent int, born uint64, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	born, err2 := strconv.ParseUint(string(fields[19]), 10, 64)
	return parent, born, err == nil && err2 == nil
}
