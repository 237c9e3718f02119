//go:build unix

package suite

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// Whoever interrupts a recording is told what could not be deleted.
func TestInterruptedWithRest(t *testing.T) {
	left := errors.New("it could not be deleted")
	err := ui.UntilSignal(func(ctx context.Context) error {
		// Not SIGINT: a shell has its background jobs ignore that.
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return ended(ctx, context.Cause(ctx), left)
	})
	if !errors.Is(err, left) {
		t.Errorf("it ends with %v", err)
	}
	interrupted, stop := context.WithCancelCause(t.Context())
	cause := errors.New("interrupted")
	stop(cause)
	if err := ended(interrupted, cause, nil); err != cause {
		t.Errorf("with nothing left it ends with %v", err)
	}
	failed := errors.New("failed")
	if err := ended(t.Context(), failed, left); !errors.Is(err, failed) || !errors.Is(err, left) {
		t.Errorf("without an interruption it ends with %v", err)
	}
}
