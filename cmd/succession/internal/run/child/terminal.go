//go:build unix

package child

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the terminal that the parent's process group has in its hands, if it has
// one. The command stands in a process group of its own; with that in the foreground it
// can read from the terminal, and the terminal's keys, such as ^C, reach it once and
// nobody else.
type terminal struct {
	group int // the parent's process group
	given bool
	state *unix.Termios // before the command got it; nil if that is not known
}

// plain reports whether the terminal is both standard input and output and the parent's
// group has it, so that no partner in a pipeline needs it.
func (t *terminal) plain() bool {
	for _, fd := range []int{0, 1} {
		if g, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || g != t.group {
			return false
		}
	}
	return true
}

// give puts the command's process group in the foreground, and continues it. It reports
// false where the parent's group has not got the terminal, and changes nothing then.
func (t *terminal) give(pid int) bool {
	tty, err := openTerminal()
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	switch g, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP); {
	case err != nil, g != t.group && g != pid:
		return false
	}
	if !t.given {
		t.state, _ = unix.IoctlGetTermios(tty, getTermios)
	}
	// Changing the foreground from the background stops a process that does not
	// ignore this. The command has been forked and does not inherit it.
	signal.Ignore(syscall.SIGTTOU)
	if unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, pid) != nil {
		return false
	}
	t.given = true
	// It may have asked for input before, and stand still.
	syscall.Kill(-pid, syscall.SIGCONT)
	return true
}

// takeBack puts the group that had the terminal in the foreground again, if the command's still has it, or one of which
// nobody is left, such as a job of a command that is a shell. Another group has it from the shell that started this.
// If killed is true, its settings become what they were before, as in bash after a signal: the command could not restore them.
// One that ends by itself may have changed them on purpose.
func (t *terminal) takeBack(pid int, killed bool) {
	if !t.given {
		return
	}
	tty, err := openTerminal()
	if err != nil {
		return
	}
	defer unix.Close(tty)
	if g, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP); err == nil && (g == pid || syscall.Kill(-g, 0) == syscall.ESRCH) {
		if killed && t.state != nil {
			unix.IoctlSetTermios(tty, setTermios, t.state) // at once: its output may be stopped
		}
		unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, t.group)
		t.given = false
	}
}

// openTerminal opens the terminal of this session, which a command may use whatever its
// standard files are (tty(4)).
func openTerminal() (int, error) { return unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0) }
