//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package fence

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
)

// lock locks the file at path, which it creates, against other processes and other calls.
// The kernel unlocks it when this process ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	// A goroutine cannot wait for an unlock and for a context at the same time, so it asks again
	// and again.
	wait := backoff.Backoff{Min: time.Millisecond, Max: 100 * time.Millisecond}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = wait.Sleep(ctx)
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, err
		}
	}
}
