//go:build unix

package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Command is what to run, and how its guard is started.
type Command struct {
	Path string   // the executable, as from exec.LookPath
	Args []string // its arguments, the command's name first
	Env  []string // as in exec.Cmd; nil is this process's own environment
	// Guard are the arguments that make this process's own executable call
	// [Guard] with those that follow them.
	Guard []string
	// Until, where it is not nil, returns the instant of [Now] at which the guard kills the
	// command, whatever has become of this process, unless [Child.Until] has told it a later one
	// before; 0 is never. Start calls it when the guard is there, as a busy machine may take
	// a second for that, and from another goroutine again and again until the command is executed, for which a slow file
	// system may take longer than that. Afterwards [Child.Tell] calls it.
	Until func() time.Duration
	// Hold stay open until nothing of the command runs, also when this process is killed:
	// files whose locks keep others from leading. The command does not get them, and the
	// caller may close them after Start.
	Hold []*os.File
	// Stdin is the command's standard input; nil is that of this process. The caller may close
	// it after Start.
	Stdin *os.File
	// Stopped, where it is not nil, is called when the command stands still and the guard
	// cannot let it go on: somebody has stopped it by sig, or it wants the terminal, which
	// this process's group has not got (SIGTTIN, SIGTTOU). It must not block.
	Stopped func(pid int, sig syscall.Signal)
	// Refused, where it is not nil, is called once for each process of the command that the
	// guard, or this process once that was killed, may not signal, as it has become another user's. Such a process runs on, and the
	// child is gone only when it has ended by itself. Refused must not block.
	Refused func(pid int)
	// Blind, where it is not nil, is called when what is to be killed could not be looked for, as err says. Until that
	// succeeds, it is tried again and the child is not gone. Blind must not block.
	Blind func(err error)
}

// A Child is a running command together with all that it starts. Standard output and error are
// those of this process. It is safe for concurrent use.
type Child struct {
	pid     int
	guard   *os.Process
	born    uint64       // when the guard was, in ticks of the clock
	refused map[int]bool // the processes that take no signal, once that was said
	until   func() time.Duration
	control *os.File
	status  Status
	ended   chan struct{}
	gone    chan struct{}
}

// Status is how a command ended.
type Status struct {
	Code   int            // its exit code, where Signal is 0
	Signal syscall.Signal // the signal that it died of
	// GuardDied says that somebody killed the guard, and the command with it; it
	// is then not known how the command ended.
	GuardDied bool
	// Expired says that the guard killed the command, as nobody had told it a later
	// instant.
	Expired bool
}

// ErrExpired is the error of [Start] when the instant of Until came before the command was begun.
var ErrExpired = errors.New("the time of the command was over before it was started")

// ExitCode returns the code by which a shell knows the status: the command's own,
// or 128 and the number of the signal.
func (s Status) ExitCode() int {
	if s.Signal != 0 {
		return 128 + int(s.Signal)
	}
	return s.Code
}

// Start starts the command and blocks until it runs, which takes a few
// milliseconds. The command gets the descriptors that this process inherited. Where it
// cannot be executed Start returns an [*os.PathError] with the system's reason, and
// [ErrExpired] where it is too late to. The caller must wait for [Child.Gone].
func Start(c Command) (*Child, error) {
	if err := CanRun(); err != nil {
		return nil, err
	}
	// Package time opens the file of the local time zone when it is first asked for the local
	// time, and without close-on-exec. Asked now, it does so before the fork, and not during it.
	_, _ = time.Now().Zone()

	controlRead, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer controlRead.Close()
	reports, reportsWrite, err := os.Pipe()
	if err != nil {
		control.Close()
		return nil, err
	}
	defer reportsWrite.Close()

	self, err := executable()
	if err != nil {
		return nil, errors.Join(err, control.Close(), reports.Close())
	}
	// What this process inherited beside its standard files, such as the sockets of a
	// service manager or the job server of make(1), is for the command. The guard's own
	// descriptors come behind.
	own := []uintptr{controlRead.Fd(), reportsWrite.Fd()}
	for _, f := range c.Hold {
		own = append(own, f.Fd())
	}
	files := append(inherited(len(own)), own...)
	if c.Stdin != nil {
		files[0] = c.Stdin.Fd()
	}
	args := append([]string{os.Args[0]}, c.Guard...)
	for _, n := range []int64{int64(syscall.Getpgrp()), int64(len(files) - len(own)), int64(len(c.Hold))} {
		args = append(args, strconv.FormatInt(n, 10))
	}
	guard, _, err := syscall.StartProcess(self, append(append(args, c.Path), c.Args...), &syscall.ProcAttr{
		Env:   (&exec.Cmd{Env: c.Env}).Environ(), // without what a later one replaces
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true}, // a terminal's signals are not for the guard
	})
	if err != nil {
		// Not wrapped: that this file is missing must not be taken for the command's.
		return nil, errors.Join(fmt.Errorf("the guard process cannot be started: %v", err), control.Close(), reports.Close())
	}
	// The guard has them now. With these ends open, nobody would see it go.
	controlRead.Close()
	reportsWrite.Close()

	ch := &Child{control: control, until: c.Until, refused: make(map[int]bool), ended: make(chan struct{}), gone: make(chan struct{})}
	ch.guard, _ = os.FindProcess(guard) // it does not fail on Unix
	lines := bufio.NewReader(reports)
	if ch.born, err = startTime(guard); err != nil {
		err = errors.Join(fmt.Errorf("the guard process cannot be seen: %v", err), control.Close(), reports.Close())
		ch.guard.Wait() // it has started nothing, as it was not told to
		return nil, err
	}
	fallBack() // the guard starts nothing before readStart
	if err := ch.readStart(lines, c); err != nil {
		control.Close()
		reports.Close()
		ch.bury(c)
		return nil, err
	}
	go ch.follow(c, lines, reports)
	return ch, nil
}

// inherited returns the descriptors of this process from 0 on, with those that it did not
// inherit as closed ones, up to a gap where n others fit in.
func inherited(n int) []uintptr {
	files := []uintptr{0, 1, 2}
	for fd := len(files); fd < len(files)+n; fd++ {
		// What this process opened itself is closed on exec.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		for len(files) < fd {
			files = append(files, ^uintptr(0))
		}
		files = append(files, uintptr(fd))
	}
	return files
}

// readStart tells the guard until when the command may run, again and again, and reads what has come of it.
func (c *Child) readStart(lines *bufio.Reader, cmd Command) error {
	line, err := lines.ReadString('\n')
	if line == reportReady {
		done := make(chan struct{})
		var telling sync.WaitGroup
		telling.Go(func() {
			for {
				select {
				case <-time.After(c.Tell()):
				case <-done:
					return
				}
			}
		})
		line, err = lines.ReadString('\n')
		close(done)
		telling.Wait()
	}
	if err != nil {
		return errors.New("the guard process died while it started the command")
	}
	if line == reportExpired {
		return ErrExpired
	}
	var errno int
	if scan(line, reportFailed, &errno) {
		return &os.PathError{Op: "exec", Path: cmd.Path, Err: syscall.Errno(errno)}
	}
	if !scan(line, reportStarted, &c.pid) {
		return fmt.Errorf("the guard process reports %q", line)
	}
	return nil
}

// follow reads the guard's reports until it has gone.
func (c *Child) follow(cmd Command, lines *bufio.Reader, reports io.Closer) {
	c.status.GuardDied = true
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		var code, sig, pid int
		var expired bool
		var why string
		if scan(line, reportEnded, &code, &sig, &expired) {
			c.status = Status{Code: code, Signal: syscall.Signal(sig), Expired: expired}
			close(c.ended)
		} else if scan(line, reportStopped, &sig) && cmd.Stopped != nil {
			cmd.Stopped(c.pid, syscall.Signal(sig))
		} else if scan(line, reportRefused, &pid) {
			c.takesNoSignal(cmd, pid)
		} else if scan(line, reportBlind, &why) && cmd.Blind != nil {
			cmd.Blind(errors.New(why))
		}
	}
	// The guard's end of the pipe is closed: it has gone, or is about to.
	reports.Close()
	c.bury(cmd)
	c.control.Close()
	if c.status.GuardDied {
		close(c.ended)
	}
	close(c.gone)
}

// takesNoSignal says so of the process, once, to the caller of Start.
func (c *Child) takesNoSignal(cmd Command, pid int) {
	if cmd.Refused != nil && !c.refused[pid] {
		c.refused[pid] = true
		cmd.Refused(pid)
	}
}

// bury waits for the end of the guard. What that has left, as it was killed, is killed.
func (c *Child) bury(cmd Command) {
	if state, err := c.guard.Wait(); err != nil || !state.Success() {
		blind := false
		killLeft(c.pid, c.born, func(err error) {
			if !blind && cmd.Blind != nil {
				cmd.Blind(err)
			}
			blind = true
		}, func(pid int) { c.takesNoSignal(cmd, pid) })
	}
	noFallBack() // nobody would reap what comes later
}

// Pid is the process id of the command, and the id of its process group.
func (c *Child) Pid() int { return c.pid }

// Ended is closed when the command has ended; what it started may still run.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Gone is closed when the command has ended and nothing that it started runs.
func (c *Child) Gone() <-chan struct{} { return c.gone }

// Status is how the command ended. It blocks until it has.
func (c *Child) Status() Status {
	<-c.ended
	return c.status
}

// Signal sends sig to the command's process group. Like the other orders it does
// not block, and does nothing once the command has ended.
func (c *Child) Signal(sig syscall.Signal) { c.order(orderSignal, int(sig)) }

// Stop sends sig, which asks to end, to the command's process group, and CONT, without
// which a process that stands still would not hear of it.
func (c *Child) Stop(sig syscall.Signal) {
	c.Signal(sig)
	c.Signal(syscall.SIGCONT)
}

// Sweep sends TERM to what the command left behind when it ended. If its process group got TERM together with it, that is left out: some
// programs take a second TERM for impatience.
func (c *Child) Sweep() { c.order(orderSweep) }

// Until tells the guard at which instant of [Now] to kill the command and all that
// it started, in place of what it was told before; 0 is never.
func (c *Child) Until(at time.Duration) { c.order(orderUntil, int64(at)) }

// Tell tells the guard what [Command.Until] returns now. The caller must call it again when the time has
// passed that it returns: half of what is left, so that the guard hears in time of a later instant; or a second, as what is
// never may get one.
func (c *Child) Tell() (again time.Duration) {
	if c.until == nil {
		c.Until(0)
		return time.Second
	}
	until := c.until()
	c.Until(until)
	if left := until - Now(); until != 0 && left > 0 {
		return max(left/2, time.Millisecond)
	}
	return time.Second
}

// Kill kills the command and all that it started.
func (c *Child) Kill() {
	c.control.Close()               // there is always room for that
	c.guard.Signal(syscall.SIGCONT) // a guard that stands still would not see it
}

// order tells the guard what to do. That it has gone meanwhile is no error:
// nothing is left to be told. Nor is it that the pipe has no room, as the guard has stood still for hours: then
// it is late for all but Kill.
func (c *Child) order(format string, args ...any) {
	line := fmt.Appendf(nil, format, args...)
	if control, err := c.control.SyscallConn(); err == nil {
		control.Write(func(fd uintptr) (done bool) {
			unix.Write(int(fd), line) // the whole line, or nothing (pipe(7), PIPE_BUF)
			return true
		})
	}
}
