package coordtest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A process that is killed while it builds leaves no compiler behind.
func TestBuildDies(t *testing.T) {
	if os.Getenv("COORDTEST_BUILDS") != "" {
		t.Log(compile(t.Context(), ".", "nothing", ".", "nothing"))
		return
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	// In place of go, one that has a pipe open as long as it lives.
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\nexec sleep 600 >"+pipe+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBuildDies$")
	cmd.Env = append(os.Environ(), "COORDTEST_BUILDS=yes", "PATH="+dir+":"+os.Getenv("PATH"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Error(err)
	}
}
