//go:build unix

package child

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the terminal on standard input, where the command gets the use of
// it. The command stands in a process group of its own; with that in the
// foreground it can read from the terminal, and the terminal's keys, such as ^C,
// reach it once and nobody else.
type terminal struct {
	group int // whose the terminal is; 0 where the command gets none
	given bool
}

// foregroundGroup returns this process's group where that may give the terminal
// away: it has the terminal, and the terminal is both standard input and output,
// so that no partner in a pipeline needs it. It is 0 otherwise.
func foregroundGroup() int {
	own := unix.Getpgrp()
	for _, fd := range []int{0, 1} {
		if g, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || g != own {
			return 0
		}
	}
	return own
}

// give puts the command's process group in the foreground.
func (t *terminal) give(pid int) {
	if t.group == 0 {
		return
	}
	// Changing the foreground from the background stops a process that does not
	// ignore this. The command has been forked and does not inherit it.
	signal.Ignore(syscall.SIGTTOU)
	if unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, pid) != nil {
		return
	}
	t.given = true
	// It may have asked for input too early, and stand still.
	syscall.Kill(-pid, syscall.SIGCONT)
}

// takeBack puts the group that had the terminal in the foreground again.
func (t *terminal) takeBack() {
	if t.given {
		t.given = false
		unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, t.group)
	}
}
