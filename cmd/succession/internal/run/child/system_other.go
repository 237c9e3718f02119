//go:build unix && !linux

package child

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// clockID is the clock of [Now]: it is the same for all processes. Whether it goes on
// while the machine is suspended differs from system to system.
const clockID = unix.CLOCK_MONOTONIC

// How the state of a terminal is read and set (termios(4)).
const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

const adopts = false

func adopt() {}

func fallBack()   {}
func noFallBack() {}

func commandAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// CanRun returns nil: nothing stands in the way of running a command.
func CanRun() error { return nil }

func executable() (string, error) { return os.Executable() }

func startTime(int) (uint64, error) { return 0, nil }

// killLeft kills the process group that a guard has left.
func killLeft(pgid int, _ uint64, _ func(error), refused func(pid int)) {
	if pgid != 0 && syscall.Kill(-pgid, syscall.SIGKILL) == syscall.EPERM { // not 0: the guard has said that it has started the command
		refused(pgid)
	}
}

// leftBehind sends sig to what is left of the command's process group, which keeps
// its id as long as anybody is in it. If others is true, that is left out, and nobody else is known.
func (g *guard) leftBehind(sig syscall.Signal, others bool) error {
	if !others {
		g.signal(sig)
	}
	return nil
}
