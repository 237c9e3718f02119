package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A priority is a nice value, of a command and of all that it starts.
type priority int

// What is built and made has less priority than tests, which must not wait for a compiler, and more
// than an idle lane, as others wait for it. It is not much less: beside a program that keeps the
// processors busy, something with a nice value of 15 gets a thirtieth of them.
const (
	usual  priority = 0
	behind priority = 5
	idle   priority = 19
)

// command returns a command with a process group of its own. All of it ends when ctx does, compilers and servers too: it is
// interrupted, so that what has temporary files can remove them, and a little later killed.
//
// One with less priority has a session of its own, too. Where Linux shares the processors out between sessions (autogroup, sched(7)), a
// nice value holds only within one, and servers that open sessions, as each process of PostgreSQL does, would have no more of
// the processors than what runs in this session with the lowest priority.
func command(ctx context.Context, p priority, argv ...string) *exec.Cmd {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if p != usual {
		argv = slices.Concat([]string{executable(), "low", strconv.Itoa(int(p))}, argv)
		attr = &syscall.SysProcAttr{Setsid: true}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = attr
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

// executable returns the path of this program.
func executable() string {
	self, err := os.Executable()
	if err != nil {
		panic(err) // it is known, but where /proc is not mounted
	}
	return self
}

// low is what runs in place of a command with less priority, in its session: it gives both that priority, and becomes the command.
func low(nice string, argv []string) error {
	const file, pauses = "/proc/self/autogroup", 20
	for range pauses {
		// Linux may lack it; and lets others than root do it only ten times in a second.
		if err := os.WriteFile(file, []byte(nice), 0); !errors.Is(err, syscall.EAGAIN) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	program, err := exec.LookPath("nice")
	if err != nil {
		return err
	}
	return syscall.Exec(program, slices.Concat([]string{"nice", "-n", nice}, argv), os.Environ())
}
