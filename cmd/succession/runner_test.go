//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/cmd/succession/internal/migrate"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// writes is a command that says its process id, and then writes to $LOG all the time,
// whatever happens to it short of KILL.
const writes = `trap '' TERM HUP; echo $$; while :; do echo "$SUCCESSION_ID" >>$LOG; sleep 0.005; done`

// follows is a command that does nothing but note that it was there.
const follows = `echo "$SUCCESSION_ID" >>$LOG; echo runs; sleep 0.2`

// candidate starts a succession whose command is script.
func candidate(t *testing.T, log, url, id, name, script string) *process {
	t.Helper()
	cmd := command("--url", url, "run", "--id", id, name, "--", "sh", "-c", script)
	cmd.Env = append(cmd.Env, "LOG="+log)
	return startCommand(t, cmd)
}

// pids returns the process ids of the command of p, which writes, and of its guard.
func (p *process) pids() (pid, guard int) {
	p.t.Helper()
	line, _ := p.next()
	pid, err := strconv.Atoi(line)
	guard, ok := parentOf(p.t, line)
	if err != nil || !ok || guard == p.cmd.Process.Pid {
		p.t.Fatalf("the command says %q, and its parent is %d, want a guard", line, guard)
	}
	return pid, guard
}

// stop stops p, and returns when no thread of it runs any more.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		p.t.Fatal(err)
	}
}

// waits fails when p, which waits, is elected soon. It can miss a mistake, but never
// report one that is none.
func (p *process) waits(when string) {
	p.t.Helper()
	select {
	case e := <-p.events:
		p.t.Fatalf("%s: %+v", when, e)
	case <-time.After(300 * time.Millisecond):
	}
}

// takesTurns checks that nobody wrote once the last one had begun.
func takesTurns(t *testing.T, log, first, last string) {
	t.Helper()
	lines := readLines(t, log)
	if n := slices.Index(lines, last); n < 1 || n != len(lines)-1 || lines[0] != first {
		t.Errorf("%s began at line %d of %d, and the last one is %q: the command of %s went on", last, n+1, len(lines), lines[len(lines)-1], first)
	}
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// On this machine the death of succession is known at once; its place must not be
// free before the guard has killed the command.
func TestPlaceIsHeldUntilTheCommandIsDead(t *testing.T) {
	t.Parallel()
	t.Run("local", func(t *testing.T) { placeIsHeld(t, localURL(t)) })
	t.Run("both", func(t *testing.T) { placeIsHeld(t, migrate.BothURL(localURL(t), localURL(t))+"&begin=true") })
}

func placeIsHeld(t *testing.T, url string) {
	log := filepath.Join(t.TempDir(), "log")
	first := candidate(t, log, url, "web-1", "reports", writes)
	_, guard := first.pids()
	second := candidate(t, log, url, "web-2", "reports", follows)
	second.event("waiting")

	adopt(t)
	kill(t, guard, syscall.SIGSTOP) // it takes its time
	t.Cleanup(func() { syscall.Kill(guard, syscall.SIGCONT) })
	first.signal(syscall.SIGKILL)
	first.exits(-9)
	second.waits("while the command of the killed leader runs")
	kill(t, guard, syscall.SIGCONT)
	second.line("runs")
	first.nothingLeft()
	second.exits(0)
	takesTurns(t, log, "web-1", "web-2")
	if _, err := unix.Wait4(guard, nil, 0, nil); err != nil {
		t.Error(err)
	}
}

// adopt makes this process the parent of orphans until the test ends. The kernel would
// wake a stopped guard whose process group nobody in its session looks after any more
// (_exit(2)).
func adopt(t *testing.T) {
	t.Helper()
	set := func(on uintptr) error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, on, 0, 0, 0) }
	if err := set(1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set(0) })
}

// The place does not go with the guard either, but with the last of the two.
func TestPlaceOutlivesTheGuard(t *testing.T) {
	url, log := localURL(t), filepath.Join(t.TempDir(), "log")
	first := candidate(t, log, url, "web-1", "reports", writes)
	_, guard := first.pids()
	second := candidate(t, log, url, "web-2", "reports", follows)
	second.event("waiting")

	first.stop()
	kill(t, guard, syscall.SIGKILL) // and, by the kernel, the command
	second.waits("while the leader is stopped")
	first.signal(syscall.SIGKILL)
	second.line("runs")
	first.nothingLeft()
	second.exits(0)
	takesTurns(t, log, "web-1", "web-2")
}

// A waiter that was stopped keeps its place on this machine, and holds up those behind it when its turn
// comes.
func TestStoppedWaiterKeepsItsPlace(t *testing.T) {
	url, log := localURL(t), filepath.Join(t.TempDir(), "log")
	first, second, third := threeInLine(t, log, url, "reports")
	second.stop()
	first.signal(syscall.SIGTERM)
	first.exits(143)
	third.waits("behind a waiter that is stopped")
	second.signal(syscall.SIGCONT)
	second.line("runs")
	second.exits(0)
	third.line("runs")
	third.exits(0)
}

// threeInLine starts three candidates. The first leads until it is stopped.
func threeInLine(t *testing.T, log, url, name string) (first, second, third *process) {
	t.Helper()
	first = candidate(t, log, url, "web-1", name, "echo leads; exec sleep 1000")
	first.line("leads")
	second = candidate(t, log, url, "web-2", name, follows)
	second.event("waiting")
	third = candidate(t, log, url, "web-3", name, follows)
	third.event("waiting")
	return first, second, third
}

// A place that an operator takes away is gone, whoever holds it.
func TestHeldPlaceIsRemoved(t *testing.T) {
	folder, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
	first := candidate(t, log, "local:"+folder, "web-1", "reports", writes)
	first.pids()
	// Whoever is stopped in the middle of a write keeps others from writing: that has tests of its own.
	for first.stop(); holdsLock(t, folder); first.stop() {
		first.signal(syscall.SIGCONT)
	}
	fifos, err := filepath.Glob(filepath.Join(folder, "reports", "@n_*"))
	if err != nil || len(fifos) != 1 {
		t.Fatalf("places %q, %v", fifos, err)
	}
	if err := os.Remove(fifos[0]); err != nil {
		t.Fatal(err)
	}
	candidate(t, log, "local:"+folder, "web-2", "reports", follows).exits(0)
}

// holdsLock reports whether somebody has locked a byte of @lock in the folder.
func holdsLock(t *testing.T, folder string) bool {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(folder, "@lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK} // of all bytes
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		t.Fatal(err)
	}
	return lock.Type != unix.F_UNLCK
}

// waiterStandsStill checks that a waiter that was stopped for longer than its session loses its place to those behind it, and
// stands in line again when it goes on.
func waiterStandsStill(t *testing.T, url string) {
	log := filepath.Join(t.TempDir(), "log")
	first, second, third := threeInLine(t, log, url, coordtest.Name(t))
	second.stop()
	third.event("waiting") // behind the first: the second has gone
	second.signal(syscall.SIGCONT)
	second.event("retrying")
	second.event("waiting")
	first.signal(syscall.SIGTERM)
	first.exits(143)
	for _, next := range []*process{third, second} {
		next.line("runs")
		next.exits(0)
	}
	if got := readLines(t, log); !slices.Equal(got, []string{"web-3", "web-2"}) {
		t.Errorf("the order was %q", got)
	}
}

// standsStill checks that the command of a succession that was stopped is dead before
// another's runs.
func standsStill(t *testing.T, url string) {
	name, log := coordtest.Name(t), filepath.Join(t.TempDir(), "log")
	first := candidate(t, log, url, "web-1", name, writes)
	first.pids()
	// Longer than a session: the command of one that is well goes on.
	second := candidate(t, log, url, "web-2", name, follows+"; sleep 9")
	second.event("waiting")
	first.stop()
	second.line("runs")
	second.exits(0)
	takesTurns(t, log, "web-1", "web-2")

	first.signal(syscall.SIGCONT)
	first.event("lost")
	first.exits(ui.ExitLost)
	first.nothingLeft()
}
