package program

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

func TestContext(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if s == syscall.SIGHUP && signal.Ignored(s) {
			t.Skip("SIGHUP is ignored here")
		}
		ctx, stop := Context()
		if err := self.Signal(s); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done() // or the signal has ended the test
		stop()
	}
}

// What nohup has started is not ended by the end of its terminal.
func TestIgnored(t *testing.T) {
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Ignore(syscall.SIGHUP)
		defer signal.Reset(syscall.SIGHUP)
	}
	_, stop := Context()
	defer stop()
	if !signal.Ignored(syscall.SIGHUP) {
		t.Error("SIGHUP is not ignored any more")
	}
}
