//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Hosts are processes of the test's own program.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-every") {
		main()
		return
	}
	os.Exit(m.Run())
}

// A host dies while it runs the command. The next one runs it again, and then nobody does.
func TestCron(t *testing.T) {
	url := "local:" + t.TempDir()
	first := start(t, url, "nightly", "sh", "-c", "echo runs; exec sleep 1000")
	first.says(t, "runs")
	second := start(t, url, "nightly", "sh", "-c", "echo runs again")
	if err := syscall.Kill(-first.Process.Pid, syscall.SIGKILL); err != nil { // with its command, as machines die
		t.Fatal(err)
	}
	second.says(t, "runs again")
	second.ends(t)
	third := start(t, url, "nightly", "sh", "-c", "echo runs a third time")
	third.says(t, "nightly: done for ")
	third.ends(t)
}

// -wait bounds how long a host stands by, and not how long its command runs.
func TestCronWaits(t *testing.T) {
	url := "local:" + t.TempDir()
	leave := filepath.Join(t.TempDir(), "leave")
	first := start(t, url, "-wait", "2s", "nightly", "sh", "-c", "echo runs; sleep 2; echo goes on; while [ ! -e "+leave+" ]; do sleep 0.01; done; echo ran")
	first.says(t, "runs")
	second := start(t, url, "-wait", "200ms", "nightly", "echo", "must not run")
	if err := second.Wait(); err == nil {
		t.Error("a host that has waited in vain has not failed")
	}
	first.says(t, "goes on")
	if err := os.WriteFile(leave, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first.says(t, "ran")
	first.ends(t)
}

// A command that fails is not written down as done.
func TestCronTriesAgain(t *testing.T) {
	url := "local:" + t.TempDir()
	first := start(t, url, "nightly", "false")
	if err := first.Wait(); err == nil {
		t.Error("the command failed, and cron did not")
	}
	second := start(t, url, "nightly", "sh", "-c", "echo runs")
	second.says(t, "runs")
	second.ends(t)
}

// Without a time between two runs, each host would run the command.
func TestCronRefuses(t *testing.T) {
	for _, every := range []string{"0", "-1h"} {
		h := start(t, "local:"+t.TempDir(), "-every", every, "nightly", "sh", "-c", "echo runs")
		if h.out.Scan() {
			t.Errorf("with -every %s the host says %q", every, h.out.Text())
		}
		if h.Wait(); h.ProcessState.ExitCode() != 2 {
			t.Errorf("with -every %s: %v, want exit status 2", every, h.ProcessState)
		}
	}
}

type host struct {
	*exec.Cmd
	out *bufio.Scanner
}

// start starts cron with the arguments on a host, in a process group of its own.
func start(t *testing.T, url string, args ...string) host {
	t.Helper()
	const decade = "87600h" // none begins during the test
	h := host{Cmd: exec.Command(os.Args[0], append([]string{"-url", url, "-every", decade}, args...)...)}
	h.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	h.Stderr = os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	h.Stdout, h.out = w, bufio.NewScanner(r)
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		syscall.Kill(-h.Process.Pid, syscall.SIGKILL)
		h.Wait()
		r.Close()
	})
	return h
}

// says waits for the next line of output, which must begin so.
func (h host) says(t *testing.T, want string) {
	t.Helper()
	if !h.out.Scan() || !strings.HasPrefix(h.out.Text(), want) {
		t.Fatalf("the host says %q (%v), want %q", h.out.Text(), h.out.Err(), want)
	}
}

// ends waits for the end of cron, which says no more.
func (h host) ends(t *testing.T) {
	t.Helper()
	if h.out.Scan() {
		t.Errorf("the host also says %q", h.out.Text())
	}
	if err := h.Wait(); err != nil {
		t.Errorf("cron: %v", err)
	}
}
