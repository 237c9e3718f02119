//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal with a process on it.
type terminal struct {
	t     *testing.T
	ptm   *os.File
	cmd   *exec.Cmd
	lines chan string
}

// onTerminal starts succession in the foreground of a terminal of its own.
func onTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	return onTerminalWith(t, nil, args...)
}

// onTerminalWith is onTerminal where redirect has changed the standard files, which are
// the terminal.
func onTerminalWith(t *testing.T, redirect func(*exec.Cmd), args ...string) *terminal {
	t.Helper()
	ptm, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(ptm.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ptm.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	pts, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pts, pts, pts
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	if redirect != nil {
		redirect(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pts.Close()
	term := &terminal{t: t, ptm: ptm, cmd: cmd, lines: make(chan string, 1000)}
	go func() {
		defer close(term.lines)
		for s := bufio.NewScanner(ptm); s.Scan(); {
			term.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		drain(t, term.lines, ptm)
	})
	return term
}

// wait waits for a line with s in it, and returns it with those before it.
func (term *terminal) wait(s string) (seen []string) {
	term.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-term.lines:
			if !ok {
				term.t.Fatalf("the terminal was left without %q; it showed %q", s, seen)
			}
			seen = append(seen, line)
			if strings.Contains(line, s) {
				return seen
			}
		case <-timeout:
			term.t.Fatalf("no %q on the terminal; it showed %q", s, seen)
		}
	}
}

func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := term.ptm.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// foreground returns the process group that has the terminal.
func (term *terminal) foreground() int {
	term.t.Helper()
	group, err := unix.IoctlGetInt(int(term.ptm.Fd()), unix.TIOCGPGRP)
	if err != nil {
		term.t.Fatal(err)
	}
	return group
}

const ctrlC, ctrlZ = "\x03", "\x1a"

func TestTheInterruptKeyReachesTheCommandOnce(t *testing.T) {
	const script = `trap 'echo got INT' INT; trap 'exit 9' USR1; echo "ready $$"; while :; do sleep 0.01; done`
	term := onTerminal(t, "--url", localURL(t), "run", "reports", "--", "bash", "-c", script)
	seen := term.wait("ready ")
	pid := 0
	fmt.Sscanf(seen[len(seen)-1], "ready %d", &pid)
	term.press(ctrlC)
	term.wait("got INT")
	if err := syscall.Kill(pid, syscall.SIGUSR1); pid == 0 || err != nil {
		t.Fatal(err)
	}
	for _, line := range term.wait("ended with exit code 9") {
		if strings.Contains(line, "got INT") {
			t.Error("one press of ^C came twice")
		}
	}
	if code := waitCode(t, term.cmd); code != 9 {
		t.Errorf("exit code %d, want 9", code)
	}
}

func TestTheInterruptKeyEndsAnOrdinaryCommand(t *testing.T) {
	term := onTerminal(t, "--url", localURL(t), "run", "reports", "--", "sh", "-c", "echo ready; exec sleep 1000")
	term.wait("ready")
	term.press(ctrlC)
	term.wait("was ended by SIGINT")
	if code := waitCode(t, term.cmd); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}

func TestTheInterruptKeyEndsTheWaiting(t *testing.T) {
	url := localURL(t)
	leader := start(t, "--url", url, "run", "--id", "web-1", "reports", "--", "sleep", "1000")
	leader.event("started")
	term := onTerminal(t, "--url", url, "run", "reports", "--", "true")
	term.wait(`waiting for "reports" behind web-1`)
	term.press(ctrlC)
	if code := waitCode(t, term.cmd); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}

// The command can read from the terminal, which only the foreground may, and the
// suspend key does not stop it.
func TestTheCommandHasTheTerminal(t *testing.T) {
	term := onTerminal(t, "--url", localURL(t), "run", "reports", "--", "sh", "-c", `echo ready; read a; echo "<$a>"; read b; echo "<$b>"`)
	term.wait("ready")
	term.press("one\n")
	term.wait("<one>")
	term.press(ctrlZ)
	term.press("two\n")
	term.wait("<two>")
	term.wait("resigned")
	if code := waitCode(t, term.cmd); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// Whatever is redirected, the command gets the terminal when it asks for it: it would
// stand still otherwise, and hold up the line.
func TestTheCommandGetsTheTerminalWhenItAsks(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, tt := range []struct {
		name, script string
		redirect     func(*exec.Cmd)
	}{
		{"output redirected", `echo ready >&2; read a; echo "<$a>" >&2`, func(c *exec.Cmd) { c.Stdout = null }},
		{"input redirected", `echo ready; read a </dev/tty; echo "<$a>"`, func(c *exec.Cmd) { c.Stdin = null }},
		{"changing it", `stty -echo </dev/tty; echo ready; read a </dev/tty; stty echo </dev/tty; echo "<$a>"`, func(c *exec.Cmd) { c.Stdin = null }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			term := onTerminalWith(t, tt.redirect, "--url", localURL(t), "run", "--log", "text", "reports", "--", "sh", "-c", tt.script)
			term.wait("ready")
			term.press("one\n")
			term.wait("<one>")
			term.wait("resigned")
			if code := waitCode(t, term.cmd); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

// The first ^C ends a command that does not read, whatever is redirected.
func TestTheInterruptKeyWithOutputRedirected(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, script := range []string{"echo ready >&2; exec sleep 1000", "echo ready >&2; exec cat", "echo ready >&2; kill -STOP $$"} {
		term := onTerminalWith(t, func(c *exec.Cmd) { c.Stdout = null }, "--url", localURL(t), "run", "--log", "text", "reports", "--", "sh", "-c", script)
		term.wait("ready")
		term.press(ctrlC)
		term.wait("was ended by SIGINT")
		if code := waitCode(t, term.cmd); code != 130 {
			t.Errorf("%s: exit code %d, want 130", script, code)
		}
	}
}

// A command that asks for the terminal while its job is in the background stands still,
// and it is said; with the job it comes to the foreground.
func TestTheCommandAsksInTheBackground(t *testing.T) {
	const shell = `
		set -m
		"$0" --url "$1" run --log text reports -- sh -c 'read a; echo "<$a>"' &
		read go; fg`
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bash := []string{"bash", "-c", shell, self, localURL(t)}
	term := onTerminalWith(t, func(c *exec.Cmd) { c.Path, c.Args = "/bin/bash", bash })
	term.wait("was stopped by SIGTTIN and holds up the line: it wants the terminal")
	term.press("go\n")
	term.wait("run --log text") // fg shows what it brings
	term.press("one\n")
	term.wait("<one>")
	term.wait("resigned")
	if code := waitCode(t, term.cmd); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// When the command has ended, succession has the terminal again, also from a job of a command that is a shell.
func TestTheTerminalIsTakenBack(t *testing.T) {
	for _, script := range []string{"true", "set -m; sh -c 'kill -KILL $PPID; exec sleep 1000'; :"} {
		t.Run(script, func(t *testing.T) {
			term := onTerminal(t, "--url", localURL(t), "run", "--grace", "1m", "--on-lost", "echo the hook runs; exec sleep 1000", "reports", "--", "bash", "-c", script)
			term.wait("the hook runs")
			if group := term.foreground(); group != term.cmd.Process.Pid {
				t.Errorf("group %d has the terminal, and not succession", group)
			}
			term.cmd.Process.Signal(syscall.SIGINT)
			term.cmd.Process.Signal(syscall.SIGTERM)
			waitCode(t, term.cmd)
		})
	}
}

// A shell that has taken the terminal from a job which stands still keeps it when the command ends.
func TestTheShellKeepsTheTerminal(t *testing.T) {
	const shell = `
		set -m
		"$0" --url "$1" run --log text reports -- sh -c 'echo "ready $$ $PPID"; exec sleep 1000'
		read line`
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bash := []string{"bash", "-c", shell, self, localURL(t)}
	term := onTerminalWith(t, func(c *exec.Cmd) { c.Path, c.Args = "/bin/bash", bash })
	seen := term.wait("ready ")
	var pid, guard int
	fmt.Sscanf(seen[len(seen)-1], "ready %d %d", &pid, &guard)
	succession, ok := parentOf(t, fmt.Sprint(guard))
	if !ok {
		t.Fatal("there is no succession")
	}
	defer syscall.Kill(succession, syscall.SIGKILL)
	until := func(what string, is func() bool) {
		for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it does not come that " + what)
			}
		}
	}
	if err := syscall.Kill(succession, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until("the shell has the terminal", func() bool { return term.foreground() == term.cmd.Process.Pid })
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until("the guard has ended", func() bool { // nobody reaps it
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", guard))
		return err != nil || strings.Contains(string(status), "State:\tZ")
	})
	if group := term.foreground(); group != term.cmd.Process.Pid {
		t.Errorf("group %d has the terminal, and not the shell", group)
	}
}

// A terminal may be set so that who writes to it in the background is stopped (stty tostop). Succession writes there while the
// command has the foreground, and must not stand still: its session would end. The command itself is stopped as ever.
func TestWhoWritesInTheBackgroundIsNotStopped(t *testing.T) {
	const shell = `
		set -m
		"$0" --url "$1" run --log text reports -- bash -c '
			stty tostop; trap "" INT; trap "exit 9" USR1; grep -E "^Sig(Blk|Ign)" /proc/self/status; echo ready; while :; do sleep 0.01; done'
		echo "exit code $?"`
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bash := []string{"bash", "-c", shell, self, localURL(t)}
	term := onTerminalWith(t, func(c *exec.Cmd) { c.Path, c.Args = "/bin/bash", bash })
	masks := 0
	for _, line := range term.wait("ready") {
		var name string
		var mask uint64
		if n, _ := fmt.Sscanf(line, "%s %x", &name, &mask); n == 2 && strings.HasPrefix(name, "Sig") {
			masks++
			if mask&(1<<(syscall.SIGTTOU-1)) != 0 {
				t.Errorf("the command has inherited %q, which has SIGTTOU", line)
			}
		}
	}
	if masks != 2 {
		t.Errorf("the command has shown %d masks of signals, want 2", masks)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", term.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var succession int
	if _, err := fmt.Sscan(string(children), &succession); err != nil {
		t.Fatal(err)
	}
	kill(t, succession, syscall.SIGINT)
	term.wait("passing SIGINT on to bash")
	kill(t, succession, syscall.SIGUSR1)
	term.wait("exit code 9")
}

// A command that changes the terminal and is killed cannot change it back; one that ends by itself leaves it as it wants to.
func TestTheTerminalIsSetBackAfterAKill(t *testing.T) {
	url := localURL(t)
	for _, tt := range []struct {
		how, script string
		terms       int // so often TERM is sent
		code        int
		echo        bool // in the end
	}{
		{"killed", "trap '' TERM; stty raw -echo; echo ready; while :; do sleep 0.01; done", 2, 137, true},
		{"ended by a signal", "stty raw -echo; echo ready; exec sleep 1000", 1, 143, true},
		{"what it left behind is killed", `stty raw -echo; set -m; bash -c 'trap "" TERM; echo ready; kill -KILL $PPID; exec sleep 1000'; :`, 0, 137, true},
		{"by itself", "trap 'exit 9' TERM; stty raw -echo; echo ready; while :; do sleep 0.01; done", 1, 9, false},
	} {
		t.Run(tt.how, func(t *testing.T) {
			term := onTerminal(t, "--url", url, "run", "--grace", "200ms", "reports", "--", "bash", "-c", tt.script)
			term.wait("ready")
			for range tt.terms {
				kill(t, term.cmd.Process.Pid, syscall.SIGTERM)
				term.wait("SIGTERM") // it has heard that, and says so
			}
			if code := waitCode(t, term.cmd); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			state, err := unix.IoctlGetTermios(int(term.ptm.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			const cooked = unix.ICANON | unix.ECHO | unix.ISIG
			if got := state.Lflag&cooked == cooked; got != tt.echo || !got && state.Lflag&cooked != 0 {
				t.Errorf("the terminal's local flags are %#x; want that they have %#x: %t", state.Lflag, cooked, tt.echo)
			}
		})
	}
}
