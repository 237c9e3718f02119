package child

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// clockID is the clock of [Now]: it is the same for all processes, and goes on while
// the machine is suspended (clock_gettime(2)).
const clockID = unix.CLOCK_BOOTTIME

// How the state of a terminal is read and set (ioctl_tty(2)).
const getTermios, setTermios = unix.TCGETS, unix.TCSETS

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

// CanRun returns nil if this process can find in /proc what a command has started, and otherwise what to do about it. Each PID
// namespace has a /proc of its own, and sees the processes of another under ids that mean nothing here.
func CanRun() error {
	switch self, err := os.Readlink("/proc/self"); {
	case err != nil:
		return fmt.Errorf("what a command starts is looked up in /proc, which cannot be read; mount it (mount -t proc proc /proc): %w", err)
	case self != strconv.Itoa(os.Getpid()):
		return errors.New("what a command starts is looked up in /proc, which is of another PID namespace; mount that of this one (unshare --mount-proc, or mount -t proc proc /proc)")
	}
	return nil
}

// executable is this process's own, even after its file was replaced or deleted.
func executable() (string, error) { return "/proc/self/exe", nil }

// killLeft kills what a guard has left to this process when it died. born is when the guard
// was born: killLeft takes the children of this process that are no older, and their
// descendants. It blocks until none of them runs, calls blind while it cannot tell, and refused for one that takes no signal.
func killLeft(_ int, born uint64, blind func(error), refused func(pid int)) {
	for {
		left, err := descendants(os.Getpid(), born)
		reaped := false
		for _, p := range left {
			if pid, _ := unix.Wait4(p.pid, nil, unix.WNOHANG, nil); pid == p.pid {
				reaped = true // what it has left is among this process's own now
				continue
			}
			told := p.signal(unix.SIGKILL)
			if told == unix.EPERM {
				refused(p.pid)
			}
			err = cmp.Or(err, unseen(told))
		}
		if err != nil {
			blind(err)
		} else if len(left) == 0 {
			return
		}
		if !reaped {
			time.Sleep(pollInterval)
		}
	}
}

// leftBehind sends sig to every descendant of the guard, but for those in the command's process group if
// others is true. Once the command has ended, that group is no safe address any more. It returns an error if there may be
// others, which could not be looked for.
func (g *guard) leftBehind(sig syscall.Signal, others bool) error {
	found, err := descendants(os.Getpid(), 0)
	for _, p := range found {
		if group, gone := syscall.Getpgid(p.pid); !others || gone == nil && group != g.pid {
			told := p.signal(sig)
			g.told(p.pid, told)
			err = cmp.Or(err, unseen(told))
		}
	}
	return err
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
	switch at, err := startTime(p.pid); {
	case unseen(err) != nil:
		return err
	case err != nil, at != p.born:
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
// parents before children, but for each [Beside] and what is below it. Those that start meanwhile may be missing; if others may
// be missing too, it returns an error with those that it has found.
func descendants(root int, born uint64) ([]process, error) {
	beside.Lock()
	defer beside.Unlock()
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := make(map[int][]process)
	for _, n := range names {
		pid, no := strconv.Atoi(n.Name())
		if no != nil {
			continue
		}
		parent, at, gone := parentOf(pid)
		if gone == nil && at >= born && !beside.pids[pid] {
			children[parent] = append(children[parent], process{pid, at})
		}
		err = cmp.Or(err, unseen(gone))
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found, err
}

// unseen returns err, unless it says that the process has ended, or is another user's: such a one takes no signal, and /proc may
// be mounted so that it is not shown (proc(5), hidepid). Any other, such as that this process may open no more files, says nothing
// of the process.
func unseen(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// startTime returns when a process was born, in ticks of the clock.
func startTime(pid int) (uint64, error) {
	_, at, err := parentOf(pid)
	return at, err
}

// parentOf reads a process's parent and its time of birth from /proc/PID/stat
// (proc_pid_stat(5)): the fields 4 and 22, counted from behind the command's name, which
// stands in parentheses and may hold parentheses itself.
func parentOf(pid int) (parent int, born uint64, err error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	parent, born, ok := parseStat(stat)
	if !ok {
		err = fmt.Errorf("/proc/%d/stat has %q", pid, stat)
	}
	return parent, born, err
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
