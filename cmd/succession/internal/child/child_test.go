//go:build linux

package child_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/succession-dev/succession/cmd/succession/internal/child"
)

const patience = 20 * time.Second

// TestMain makes the test binary its own guard.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guard" {
		os.Exit(child.Guard(os.Args[2:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // with the race detector guards would sleep before they exit
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, args ...string) *child.Child {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Fatal(err)
	}
	c, err := child.Start(child.Command{Path: path, Args: args, Guard: []string{"guard"}})
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
