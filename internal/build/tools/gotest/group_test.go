package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A run that is interrupted ends what it has started, with the children of that, and begins nothing more. What had ended
// counts, what was running does not, and the closing lines are there.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	dir := module(t, `package p

import ("os/exec"; "testing")

func TestA(t *testing.T) {}

func TestB(t *testing.T) {
	if err := exec.Command("./wait").Run(); err != nil { t.Error(err) }
}
`)
	// What waits has a pipe open, which ends when it does.
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "wait"), []byte("#!/bin/sh\ntrap '' INT\nsleep 600 >"+pipe+" &\nwait\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		f, err := os.Open(pipe) // when one of the two waits
		interrupt()
		if err == nil {
			_, err = io.Copy(io.Discard, f)
		}
		gone <- err
	}()
	var out bytes.Buffer
	r := newReport(newConsole(&out))
	err := r.runAll(ctx, []string{dir + " ./...", dir + " ./... -test.run=TestA", "--make", "server " + dir + "/wait"}, "")
	if err == nil || err.Error() != "interrupted" {
		t.Errorf("runAll returned %v", err)
	} else {
		r.problem(err.Error())
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
	if r.close() || r.failed != 1 || r.passed > 1 || !strings.Contains(out.String(), "\ntests: ") {
		t.Errorf("%d passed, %d failed, want at most the first test, and that it was interrupted:\n%s", r.passed, r.failed, &out)
	}
}
