//go:build unix

package child

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend/kit/clock"
)

// pollInterval is how often the guard looks for what it is not told: whether the command's
// process group is empty, on some systems, whether a terminal that the command wants
// can be had, and what is left to kill if it could not see that.
const pollInterval = 50 * time.Millisecond

// never is an instant of Now that does not come: decades after the machine was started.
const never = time.Duration(1 << 60)

// guard is the process between the parent and the command. It does everything in
// one loop, so that it never signals a process id that it has just given up by
// reaping it.
type guard struct {
	control *os.File
	orders  *bufio.Reader // of what the parent says
	alone   bool          // the parent has gone, or wants everything killed
	reports *os.File
	tty     terminal
	alarm   *clock.Timer  // lasts as long as the process
	pid     int           // of the command, which is also its process group
	ended   bool          // the command has been reaped
	termed  bool          // its process group has got TERM
	until   time.Duration // when to kill unless told otherwise, as Now; 0 is never
	expired bool          // the command is killed because that has come
	killing bool
	refused map[int]bool // the processes that take no signal, once that was reported
	poll    *time.Ticker
	wants   bool // the command stands still until it gets the terminal
	blind   bool // when it looked for what it has to kill, it did not see everything
	said    bool // that was reported
}

// Guard is the guard process: it starts the command that args name, obeys the
// parent, and returns when nothing of the command runs any more. It must be called
// from the main goroutine of a process that [Start] started; what it returns is
// the process's exit code.
func Guard(args []string) int {
	// The command's parent death signal follows the thread that forked it.
	runtime.LockOSThread()
	// The parent's process group, the first of the descriptors that are the guard's own, and how
	// many files it holds for the parent.
	var n [3]int
	if len(args) < len(n)+2 {
		return refuse()
	}
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[i]); err != nil {
			return refuse()
		}
	}
	group, own, held := n[0], n[1], n[2]
	control, reports := os.NewFile(uintptr(own), "control"), os.NewFile(uintptr(own+1), "reports")
	if !isPipe(control) || !isPipe(reports) {
		return refuse()
	}
	for fd := own; fd < own+2+held; fd++ {
		syscall.CloseOnExec(fd)
	}
	g := &guard{control: control, orders: bufio.NewReader(control), reports: reports, tty: terminal{group: group}, alarm: clock.NewTimer(), refused: make(map[int]bool)}
	g.set(0)
	if adopts && !g.alarm.Exact() {
		fmt.Fprintln(os.Stderr, "succession: guard: no timer can be had that counts suspensions (timerfd_create); may this process open more files?")
		return 1
	}
	adopt()

	surviveSignals()
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	// How long the guard took to get here does not count, as the parent's session goes on meanwhile.
	fmt.Fprint(reports, reportReady)
	until, err := g.orders.ReadString('\n')
	if err != nil { // the parent has gone
		return 1
	}
	g.obey(until)
	if g.late() {
		fmt.Fprint(reports, reportExpired)
		return 1
	}
	if err := g.start(args[len(n)], args[len(n)+1:]); err != nil {
		return 1
	}
	spoken := make(chan struct{})
	go listen(own, spoken)
	g.run(spoken, died)
	return 0
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

func refuse() int {
	fmt.Fprintln(os.Stderr, `succession: "guard" is what "succession run" starts by itself; use "succession run"`)
	return 125
}

// surviveSignals lets the guard outlive the signals that a service manager sends to every
// process of a service at once: they are meant for the command, and the guard ends after
// it. The guard has handlers for them, as the command would inherit that it ignores them.
func surviveSignals() {
	swallow := make(chan os.Signal, 1)
	for _, sig := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTOU,
	} {
		if !signal.Ignored(sig) {
			signal.Notify(swallow, sig)
		}
	}
}

// listen tells whenever there is something to hear from the parent, its end too.
func listen(control int, spoken chan<- struct{}) {
	for {
		if readable(control, -1) {
			spoken <- struct{}{}
		}
	}
}

// readable waits for something to read, or the end, for so many milliseconds; for ever if that is negative.
func readable(fd, ms int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, ms)
		if err != unix.EINTR {
			return n > 0
		}
	}
}

// start forks and executes the command. It does not use os/exec, which reaps what
// it started by itself.
func (g *guard) start(path string, argv []string) error {
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   commandAttr(),
	})
	if err != nil {
		errno := syscall.EINVAL
		errors.As(err, &errno)
		fmt.Fprintf(g.reports, reportFailed, int(errno))
		return err
	}
	g.pid = pid
	if g.tty.plain() {
		g.tty.give(pid)
	}
	fmt.Fprintf(g.reports, reportStarted, pid)
	return nil
}

// run obeys the parent and reaps, until nothing is left.
func (g *guard) run(spoken <-chan struct{}, died <-chan os.Signal) {
	g.poll = time.NewTicker(pollInterval)
	defer g.poll.Stop()
	g.want(false)
	for {
		select {
		case <-spoken:
		case <-died:
		case <-g.poll.C:
			if g.wants && g.tty.give(g.pid) {
				g.want(false)
			}
			if g.blind {
				g.kill()
			}
		case <-g.alarm.C:
			if !g.late() {
				g.set(g.until)
			}
		}
		if g.hear(); g.alone {
			spoken = nil
		}
		if g.late() && !g.killing {
			g.expired = true
			g.kill()
		}
		if g.reap() {
			g.tty.takeBack(g.pid, g.killing)
			return
		}
	}
}

// hear obeys all that the parent has said by now. The guard does so before it takes the command for late: while it could not
// listen, as the start of the command took long or it was stopped, it may have been told a later instant.
func (g *guard) hear() {
	for !g.alone && (g.orders.Buffered() > 0 || readable(int(g.control.Fd()), 0)) {
		line, err := g.orders.ReadString('\n')
		if err != nil {
			g.alone = true
			g.kill()
			return
		}
		g.obey(line)
	}
}

// set remembers when to kill, and sets the alarm. That rings somewhat early, because the
// clock is read twice, and must be set again then.
func (g *guard) set(until time.Duration) {
	g.until = until
	g.alarm.Reset(clock.Now(), cmp.Or(until, never)-Now())
}

// late reports whether the time of the command is over.
func (g *guard) late() bool { return g.until != 0 && Now() >= g.until }

func (g *guard) obey(line string) {
	var sig int
	var until int64
	switch {
	case line == orderSweep:
		g.looked(g.leftBehind(syscall.SIGTERM, g.termed)) // if that fails, KILL comes later
		g.leftBehind(syscall.SIGCONT, g.termed)
	case scan(line, orderUntil, &until):
		g.set(time.Duration(until))
	case scan(line, orderSignal, &sig) && !g.ended:
		g.signal(syscall.Signal(sig))
		g.termed = g.termed || syscall.Signal(sig) == syscall.SIGTERM
	}
}

// signal sends sig to the command's process group.
func (g *guard) signal(sig syscall.Signal) { g.told(g.pid, syscall.Kill(-g.pid, sig)) }

// told reports a process that may not be signalled, as err says, because it has become another user's, by sudo(8) for instance.
func (g *guard) told(pid int, err error) {
	if err != syscall.EPERM || g.refused[pid] {
		return
	}
	g.refused[pid] = true
	if _, err := fmt.Fprintf(g.reports, reportRefused, pid); err != nil { // the parent has gone
		fmt.Fprintf(os.Stderr, "succession: guard: process %d runs as another user, takes no signal, and goes on\n", pid)
	}
}

// kill kills everything, and goes on with that until nothing is left.
func (g *guard) kill() {
	g.killing = true
	if !g.ended {
		g.signal(syscall.SIGKILL)
	}
	g.blind = g.looked(g.leftBehind(syscall.SIGKILL, false)) != nil
	g.setPoll()
}

// looked reports once that not everything could be looked for, as err says, and returns err.
func (g *guard) looked(err error) error {
	if err == nil || g.said {
		return err
	}
	g.said = true
	if _, gone := fmt.Fprintf(g.reports, reportBlind, err.Error()); gone != nil {
		fmt.Fprintf(os.Stderr, "succession: guard: looking again for what may run on: %v\n", err)
	}
	return err
}

// reap collects all that has died, reports the command's end, and says whether
// nothing is left.
func (g *guard) reap() (gone bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil: // ECHILD
			return adopts || g.ended && syscall.Kill(-g.pid, 0) == syscall.ESRCH
		case pid == 0:
			return false
		case ws.Stopped():
			g.goOn(pid, ws.StopSignal())
			continue
		case pid == g.pid:
			g.ended = true
			g.want(false)
			g.tty.takeBack(g.pid, ws.Signaled())
			if ws.Signaled() {
				fmt.Fprintf(g.reports, reportEnded, 0, int(ws.Signal()), g.expired)
			} else {
				fmt.Fprintf(g.reports, reportEnded, ws.ExitStatus(), 0, g.expired)
			}
		}
		if g.killing {
			g.kill() // the dead one's own children are among ours now
		}
	}
}

// want remembers whether the command waits for the terminal, and polls while it does.
func (g *guard) want(terminal bool) {
	g.wants = terminal
	g.setPoll()
}

// setPoll polls while there is something that no signal tells. Where every process is reaped here, SIGCHLD tells of its end.
func (g *guard) setPoll() {
	if g.wants || g.blind || !adopts {
		g.poll.Reset(pollInterval)
	} else {
		g.poll.Stop()
	}
}

// goOn continues the command where nobody else would, as the shell does not know of its
// process group: when the terminal's suspend key has stopped it, and when it asks for the
// terminal. A leader that stands still holds up the line, so any other stop is reported.
func (g *guard) goOn(pid int, sig syscall.Signal) {
	switch {
	case pid != g.pid:
	case sig == syscall.SIGTSTP && g.tty.given:
		syscall.Kill(-g.pid, syscall.SIGCONT)
	case (sig == syscall.SIGTTIN || sig == syscall.SIGTTOU) && g.tty.give(g.pid):
	default:
		g.want(sig == syscall.SIGTTIN || sig == syscall.SIGTTOU)
		fmt.Fprintf(g.reports, reportStopped, int(sig))
	}
}
