package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Nothing of the line runs when it has been asked, however it has ended, and nothing of it waits to be reaped by a process that
// adopts orphans, as one that leads does.
func TestReadyLeavesNothing(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	const hangs = "sleep 1000; :"
	for _, end := range []string{"true", "false", hangs} {
		t.Run(end, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "pid")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			said := make(chan string)
			go func() {
				text, _ := os.ReadFile(fifo)
				if end == hangs {
					cancel()
				}
				said <- strings.TrimSpace(string(text))
			}()
			err := (&choice{ready: "sh -c 'sleep 1000; :' >/dev/null 2>&1 & echo $! >" + fifo + "; " + end}).ask(ctx)
			if (err == nil) != (end == "true") {
				t.Errorf("%v", err)
			}
			pid, err := strconv.Atoi(<-said)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("what it has started is still there (%v)", err)
				syscall.Kill(pid, syscall.SIGKILL)
			}
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
				t.Errorf("process %d is left (%v)", pid, err)
			}
		})
	}
}
