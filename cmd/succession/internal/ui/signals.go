package ui

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// UntilSignal calls f with a context that INT, TERM and HUP end. Where that is why f
// failed, the exit code is that of a process that the signal ended, and what else the error
// says is said. A second signal ends the wait for f.
func UntilSignal(f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for {
		select {
		case err := <-done:
			var i Interrupted
			switch {
			case !errors.As(err, &i):
				return err
			case err.Error() == i.Error(): // who sent the signal knows
				err = nil
			}
			return &ExitError{SignalExit(i.Signal), err}
		case sig := <-signals:
			if ctx.Err() != nil {
				return &ExitError{Code: SignalExit(sig)}
			}
			cancel(Interrupted{sig})
		}
	}
}

// Notify is [signal.Notify] except for signals that this process was told to ignore, as by nohup(1). Go's runtime
// respects that of HUP and INT alone.
func Notify(c chan<- os.Signal, signals ...os.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}

// Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal os.Signal }

func (i Interrupted) Error() string { return "interrupted by " + SignalName(i.Signal) }

// SignalExit is the exit code of a process that sig ended.
func SignalExit(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return ExitFailed
}
