//go:build linux

package child_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/cmd/succession/internal/run/child"
	"github.com/succession-dev/succession/internal/calm"
)

const patience = time.Minute

// TestMain makes the test binary its own guard.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guard" {
		os.Exit(child.Guard(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == "noting guard" {
		if err := os.WriteFile(os.Args[2], nil, 0o600); err != nil {
			panic(err)
		}
		os.Exit(child.Guard(os.Args[3:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // with the race detector guards would sleep before they exit
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, args ...string) *child.Child {
	t.Helper()
	return startCommand(t, child.Command{}, args...)
}

// startCommand starts args, with what cmd says besides.
func startCommand(t *testing.T, cmd child.Command, args ...string) *child.Child {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Args = path, args
	if cmd.Guard == nil {
		cmd.Guard = []string{"guard"}
	}
	c, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		<-c.Gone()
	})
	return c
}

func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("the command is not %s", what)
	}
}

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		script string
		want   child.Status
		code   int
	}{
		{"exit 0", child.Status{}, 0},
		{"exit 255", child.Status{Code: 255}, 255},
		{"kill -TERM $$", child.Status{Signal: syscall.SIGTERM}, 143},
		{"kill -KILL $$", child.Status{Signal: syscall.SIGKILL}, 137},
	} {
		t.Run(tt.script, func(t *testing.T) {
			c := start(t, "sh", "-c", tt.script)
			wait(t, c.Gone(), "gone")
			if got := c.Status(); got != tt.want || got.ExitCode() != tt.code {
				t.Errorf("status %+v with exit code %d, want %+v with %d", got, got.ExitCode(), tt.want, tt.code)
			}
			if err := syscall.Kill(c.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("signal to the command that is gone: %v, want ESRCH", err)
			}
			// Orders come too late, and must do nothing.
			c.Signal(syscall.SIGTERM)
			c.Sweep()
			c.Kill()
		})
	}
}

func TestStartFails(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"/no/such/file": os.ErrNotExist, plain: os.ErrPermission} {
		_, err := child.Start(child.Command{Path: path, Args: []string{"x"}, Guard: []string{"guard"}})
		var p *os.PathError
		if !errors.Is(err, want) || !errors.As(err, &p) || p.Path != path {
			t.Errorf("Start of %s: %v, want a *PathError with %v", path, err, want)
		}
	}
}

func TestGuardOfAnotherProgram(t *testing.T) {
	// A guard that says nothing: this process's executable with arguments that make
	// it end at once.
	_, err := child.Start(child.Command{Path: "/bin/true", Args: []string{"true"}, Guard: []string{"-test.list=^$"}})
	if err == nil {
		t.Error("Start succeeded without a guard")
	}
}

// The command must find what a shell would have given it: no descriptors of ours,
// no signals blocked or ignored.
func TestTheCommandInheritsNothing(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report")
	script := "{ ls /proc/$$/fd; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; } >" + report
	direct := exec.Command("sh", "-c", script)
	direct.Stdin, direct.Stdout, direct.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := direct.Run(); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, "sh", "-c", script)
	wait(t, c.Gone(), "gone")
	got, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("descriptors and signals under a guard:\n%s\nwithout:\n%s", got, want)
	}
}

func TestProcessGroups(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, "sh", "-c", "echo ready >"+fifo+"; exec sleep 1000")
	if _, err := os.ReadFile(fifo); err != nil {
		t.Fatal(err)
	}
	group, err := syscall.Getpgid(c.Pid())
	if err != nil || group != c.Pid() || group == syscall.Getpgrp() {
		t.Errorf("the command's group is %d, %v; want its own, %d", group, err, c.Pid())
	}
	c.Signal(syscall.SIGTERM)
	wait(t, c.Gone(), "gone")
	if s := c.Status().Signal; s != syscall.SIGTERM {
		t.Errorf("ended by %v, want TERM", s)
	}
}

// Ended comes with the command, Gone with the last process that it started, in
// whatever session that is.
func TestGoneIsLaterThanEnded(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, "sh", "-c", "setsid sh -c 'setsid sh -c \"read x <"+fifo+"\" &' & sleep 0.1; exit 4")
	wait(t, c.Ended(), "ended")
	select {
	case <-c.Gone():
		t.Fatal("gone, while what it started waits for us")
	default:
	}
	if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	wait(t, c.Gone(), "gone")
	if c.Status().Code != 4 {
		t.Errorf("status %+v, want code 4", c.Status())
	}
}

func TestKillFindsWhatKeepsForking(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// A process that goes on in a new session, as a child of its former self, all the
	// time.
	runner := filepath.Join(t.TempDir(), "runner")
	if err := os.WriteFile(runner, []byte("#!/bin/sh\nsleep 0.01\nsetsid \"$0\" &\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, "sh", "-c", runner+"; echo ready >"+fifo+"; exec sleep 1000")
	if _, err := os.ReadFile(fifo); err != nil {
		t.Fatal(err)
	}
	c.Kill()
	wait(t, c.Gone(), "gone")
	out, err := exec.Command("pgrep", "-f", runner).Output()
	if len(strings.TrimSpace(string(out))) > 0 {
		t.Errorf("still running: %s (%v)", out, err)
	}
}

// The command lives as long as somebody says so in time, and no longer: the one who
// does not is perhaps stopped.
func TestUntil(t *testing.T) {
	const step = 300 * time.Millisecond
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c := startCommand(t, child.Command{Until: in(time.Minute)}, "sh", "-c",
		"setsid sh -c 'trap \"\" TERM; echo ready >"+fifo+"; sleep 1000; :' & sleep 1000; :")
	if _, err := os.ReadFile(fifo); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	begin := child.Now()
	until := begin + step
	// Only as long as it says so in time: a busy machine may keep it from that.
	for now := begin; now < begin+3*step && now < until; now = child.Now() {
		until = now + step
		c.Until(until)
		select {
		case <-c.Ended():
			if now := child.Now(); now < until {
				if watch.NotJudged(step, "killed after %v, %v too early", now-begin, until-now) {
					return // the guard has heard too late that it may go on
				}
				t.Fatalf("killed after %v, %v too early", now-begin, until-now)
			}
		case <-time.After(step / 10):
		}
	}
	wait(t, c.Gone(), "gone")
	late := child.Now() - until
	if late < 0 && !watch.NotJudged(step, "everything was gone %v before the time was over", -late) {
		t.Errorf("everything was gone %v before the time was over", -late)
	}
	watch.From(time.Now().Add(-late)).Within(10*step, "the end of everything")
	if want := (child.Status{Signal: syscall.SIGKILL, Expired: true}); c.Status() != want {
		t.Errorf("status %+v, want %+v", c.Status(), want)
	}
}

func TestUntilNever(t *testing.T) {
	const bound = time.Second
	c := startCommand(t, child.Command{Until: in(time.Minute)}, "sleep", "1000")
	watch := calm.Start(t)
	c.Until(child.Now() + bound)
	c.Until(0)
	select {
	case <-c.Ended():
		if !watch.NotJudged(bound, "ended: %+v", c.Status()) {
			t.Fatalf("ended: %+v", c.Status())
		}
	case <-time.After(bound + bound/2):
	}
}

// in returns the instant that lies d after that at which a command's guard asks for it.
func in(d time.Duration) func() time.Duration {
	return func() time.Duration { return child.Now() + d }
}

// TestUntilIsAskedOfAGuard asks until when the command may run once its guard is there, and not before. That may
// take longer than the command may run, and the parent's session goes on meanwhile.
func TestUntilIsAskedOfAGuard(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there")
	c := startCommand(t, child.Command{Guard: []string{"noting guard", there}, Until: func() time.Duration {
		if _, err := os.Stat(there); err != nil {
			t.Errorf("asked before the guard was there: %v", err)
		}
		return 0
	}}, "true")
	wait(t, c.Gone(), "gone")
	if c.Status() != (child.Status{}) {
		t.Errorf("status %+v", c.Status())
	}
}

// A file system may take longer to execute a command than that may run. It goes on if the guard was told meanwhile that it may.
func TestASlowStartIsNoSilence(t *testing.T) {
	const step = 200 * time.Millisecond
	program := filepath.Join(t.TempDir(), "true")
	binary, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	// Who opens a file waits until the one who has a lease on it gives that back, and hears of it by SIGIO (fcntl(2)).
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	opened := make(chan os.Signal, 1)
	signal.Notify(opened, syscall.SIGIO)
	defer signal.Stop(opened)
	lease := func(kind int) error {
		_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, kind)
		return err
	}
	if err := lease(unix.F_WRLCK); err != nil {
		t.Skipf("this file system gives no lease: %v", err)
	}
	defer lease(unix.F_UNLCK)

	begin, told := child.Now(), make(chan struct{}, 99)
	until := func() time.Duration {
		now := child.Now()
		if now < begin+2*step {
			return now + step
		}
		told <- struct{}{}
		return 0
	}
	type result struct {
		c   *child.Child
		err error
	}
	started := make(chan result)
	go func() {
		c, err := child.Start(child.Command{Path: program, Args: []string{"true"}, Guard: []string{"guard"}, Until: until})
		started <- result{c, err}
	}()
	select {
	case <-opened:
	case r := <-started:
		t.Fatalf("the file is not waited for: %v", r.err)
	}
	bound, cancel := context.WithTimeout(t.Context(), patience/2)
	defer cancel()
	for range 2 { // the first time is told when it is asked for the second one
		select {
		case <-told:
		case <-bound.Done():
			t.Error("the guard is not told that the command may run on while it is started")
		}
	}
	if err := lease(unix.F_UNLCK); err != nil {
		t.Error(err)
	}
	r := <-started
	if r.err != nil {
		t.Fatal(r.err)
	}
	wait(t, r.c.Gone(), "gone")
	if r.c.Status() != (child.Status{}) {
		t.Errorf("status %+v, want that it has ended by itself", r.c.Status())
	}
}

func TestTooLateToStart(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	_, err := child.Start(child.Command{Path: "/usr/bin/touch", Args: []string{"touch", ran}, Guard: []string{"guard"}, Until: in(0)})
	if !errors.Is(err, child.ErrExpired) {
		t.Errorf("Start: %v, want %v", err, child.ErrExpired)
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Error("the command ran all the same")
	}
}

// guardOf returns the guard of a command that runs.
func guardOf(t *testing.T, c *child.Child) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	guard, err := strconv.Atoi(strings.Fields(string(stat))[3]) // proc_pid_stat(5); the name has no blanks
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// What a command has left behind does not outlive its guard either; who was there before, or was started beside it,
// is not touched.
func TestNothingOutlivesTheGuard(t *testing.T) {
	bystander := exec.Command("sleep", "1000")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		bystander.Process.Kill()
		bystander.Wait()
	}()
	time.Sleep(30 * time.Millisecond) // the ages of processes are counted in hundredths of a second
	for _, how := range []string{"", "setsid "} {
		dir := t.TempDir()
		left, ends := filepath.Join(dir, "left"), filepath.Join(dir, "ends")
		if err := errors.Join(syscall.Mkfifo(left, 0o600), syscall.Mkfifo(ends, 0o600)); err != nil {
			t.Fatal(err)
		}
		c := start(t, "sh", "-c", how+"sh -c 'echo $$ >"+left+"; exec sleep 1000' & read x <"+ends)
		pid := toldBy(t, left)
		guard := guardOf(t, c)
		later := exec.Command("cat")
		in, err := later.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		b, err := child.StartBeside(later)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ends, []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
		wait(t, c.Ended(), "ended")
		if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wait(t, c.Gone(), "gone")
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%ssh: what was left behind runs on: %v", how, err)
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if c.Status().GuardDied {
			t.Error("it is not known how the command ended, which was before")
		}
		in.Close()
		if err := b.Wait(); err != nil {
			t.Errorf("what was started beside the command: %v", err)
		}
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another child of this process: %v", err)
	}
}

// A guard that is killed may have started the command, and not have said so. Then Start fails, and nothing is left either.
func TestNothingOutlivesTheStart(t *testing.T) {
	for range 40 {
		r, w, err := os.Pipe() // its end comes when no process has w
		if err != nil {
			t.Fatal(err)
		}
		c, err := child.Start(child.Command{
			Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 1000 & kill -KILL $PPID; sleep 1000"}, Guard: []string{"guard"}, Stdin: w,
		})
		if err == nil {
			wait(t, c.Gone(), "gone")
		}
		w.Close()
		if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("what the command has started runs on: %v", err)
		}
		r.Close()
	}
}

// This process adopts orphans, which it does not reap, only as long as it has a guard.
func TestAdoptsWithAGuardAlone(t *testing.T) {
	adopts := func(want int32, when string) {
		t.Helper()
		var got int32
		if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&got)), 0, 0, 0); err != nil || got != want {
			t.Errorf("%s it adopts: %d (%v), want %d", when, got, err, want)
		}
	}
	c := start(t, "sleep", "1000")
	adopts(1, "while a command runs")
	c.Kill()
	wait(t, c.Gone(), "gone")
	adopts(0, "when the command has gone")
	if _, err := child.Start(child.Command{Path: "/no/such/file", Args: []string{"x"}, Guard: []string{"guard"}}); err == nil {
		t.Fatal("it was started")
	}
	adopts(0, "when a command could not be started")
}

// A guard that stands still hears of Kill nevertheless, also when it has been told more than the pipe has room for.
func TestKillWithAStoppedGuard(t *testing.T) {
	c := start(t, "sleep", "1000")
	if err := syscall.Kill(guardOf(t, c), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		for range 9000 { // the pipe has room for 64 KiB
			c.Until(0)
		}
	}()
	select {
	case <-told:
	case <-time.After(patience):
		t.Error("the parent waits for the guard")
	}
	c.Kill()
	wait(t, c.Gone(), "gone")
}

// A guard that stood still hears all that it was told meanwhile before it kills.
func TestAStoppedGuardHearsFirst(t *testing.T) {
	c := startCommand(t, child.Command{Until: in(time.Minute)}, "sleep", "1000")
	guard := guardOf(t, c)
	if err := syscall.Kill(guard, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, guard, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	c.Until(child.Now()) // is over when the guard goes on
	c.Until(0)
	c.Signal(syscall.SIGTERM)
	if err := syscall.Kill(guard, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	wait(t, c.Gone(), "gone")
	if want := (child.Status{Signal: syscall.SIGTERM}); c.Status() != want {
		t.Errorf("status %+v, want %+v", c.Status(), want)
	}
}

// If the time of a command is over when it has been killed, and has not ended yet, it was not killed for that.
func TestKillIsNoExpiry(t *testing.T) {
	c := startCommand(t, child.Command{Until: in(time.Minute)}, "sleep", "1000")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The guard hears of its end only when its tracer has (ptrace(2)).
	if err := unix.PtraceSeize(c.Pid()); err != nil {
		t.Skip(err)
	}
	until := child.Now() + 500*time.Millisecond
	c.Until(until)
	c.Kill()
	if err := unix.Waitid(unix.P_PID, c.Pid(), nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	busy := child.Now() >= until
	time.Sleep(until + 100*time.Millisecond - child.Now())
	if _, err := unix.Wait4(c.Pid(), nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	wait(t, c.Gone(), "gone")
	if want := (child.Status{Signal: syscall.SIGKILL}); c.Status() != want && !busy {
		t.Errorf("status %+v, want %+v", c.Status(), want)
	}
}

// What is held is free when nothing of the command runs any more, and not before; and
// the command cannot hold it longer.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	lock := func(name string) (*os.File, error) {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	var hold []*os.File
	for _, name := range []string{"one", "two"} {
		f, err := lock(name)
		if err != nil {
			t.Fatal(err)
		}
		hold = append(hold, f)
	}
	c := startCommand(t, child.Command{Hold: hold}, "sh", "-c", "sleep 1000; :")
	var others []*os.File
	for _, f := range hold {
		f.Close()
		other, err := lock(filepath.Base(f.Name()))
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			t.Errorf("a lock while the command runs: %v, want %v", err, syscall.EWOULDBLOCK)
		}
		others = append(others, other)
	}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", c.Pid()))
	if err != nil || len(fds) == 0 {
		t.Fatal(fds, err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); strings.HasPrefix(to, dir) {
			t.Errorf("the command has %s open: %s", to, fd)
		}
	}
	c.Kill()
	wait(t, c.Gone(), "gone")
	for _, f := range others {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			t.Errorf("a lock when nothing of the command runs: %v", err)
		}
	}
}

// What runs cannot be looked for while no file may be opened. That is said, nothing is taken for ended, and what is left is
// killed when one can look again.
func TestNobodyIsMissedWhoCannotBeSeen(t *testing.T) {
	for _, dies := range []string{"nobody", "the guard"} {
		t.Run(dies+" is killed", func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			blind := make(chan error, 9)
			c := startCommand(t, child.Command{Blind: func(err error) { blind <- err }},
				"sh", "-c", "setsid sh -c 'echo $$ >"+fifo+"; exec sleep 1000' & wait")
			left := toldBy(t, fifo)
			guard := guardOf(t, c)
			looks := guard
			if dies == "the guard" {
				looks = os.Getpid()
			}
			var files unix.Rlimit
			if err := unix.Prlimit(looks, unix.RLIMIT_NOFILE, nil, &files); err != nil {
				t.Fatal(err)
			}
			limit := func(most uint64) {
				if err := unix.Prlimit(looks, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: files.Max}, nil); err != nil && err != unix.ESRCH {
					t.Fatal(err)
				}
			}
			limit(1) // 0 would forbid poll(2) too
			defer limit(files.Cur)
			if dies == "the guard" {
				syscall.Kill(guard, syscall.SIGKILL)
			} else {
				c.Kill()
			}
			select {
			case err := <-blind:
				if !errors.Is(err, syscall.EMFILE) && !strings.Contains(err.Error(), syscall.EMFILE.Error()) {
					t.Errorf("it could not look: %v, want %v", err, syscall.EMFILE)
				}
			case <-c.Gone():
				t.Error("it is said to be gone")
			case <-time.After(patience):
				t.Error("it is not said that it cannot look")
			}
			if err := syscall.Kill(left, 0); err != nil {
				t.Errorf("what is left: %v", err)
			}
			limit(files.Cur)
			wait(t, c.Gone(), "gone")
			if err := syscall.Kill(left, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("it is gone, and what was left runs: %v", err)
				syscall.Kill(left, syscall.SIGKILL)
			}
		})
	}
}

// toldBy waits until a process writes its ID into the FIFO, and returns it.
func toldBy(t *testing.T, fifo string) (pid int) {
	t.Helper()
	said, err := os.ReadFile(fifo)
	if err == nil {
		pid, err = strconv.Atoi(strings.TrimSpace(string(said)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
