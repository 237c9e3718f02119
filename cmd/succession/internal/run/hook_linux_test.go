package run

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// Who looks after the command does not wait for the start of the hook that runs beside it.
func TestASlowHookHoldsUpNothing(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sh")
	binary, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	// Who executes a file waits until the one who has a lease on it gives that back, and hears of it by SIGIO (fcntl(2)).
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
	defer func(was string) { shell = was }(shell)
	shell = program

	term, err := elect.New(memory.New(nil).Client("a"), "reports", nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer term.Resign(t.Context())
	r := &runner{o: runOptions{onLost: "true"}, grace: time.Minute, report: newReporter(io.Discard, logJSON, "reports", "a")}
	defer r.report.close()
	begun, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		r.termEnds(term, "resigned")
		close(begun)
		r.afterTerm(term)
	}()
	bound := time.After(10 * time.Second)
	select {
	case <-opened:
	case <-bound:
		t.Error("the file is not waited for")
	}
	select {
	case <-begun:
	case <-bound:
		t.Error("the start of the hook is waited for")
	}
	if err := lease(unix.F_UNLCK); err != nil {
		t.Error(err)
	}
	<-over
}
