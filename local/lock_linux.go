package local

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/backoff"
)

// The modes of a lock.
const (
	shared    = unix.F_RDLCK
	exclusive = unix.F_WRLCK
	unlocked  = unix.F_UNLCK
)

// A hold is a lock on one or more names, against other processes and against others in this
// process. A write holds it exclusively, and somebody who only looks holds it shared.
//
// It is an open file description lock (F_OFD_SETLK, fcntl(2)) on one byte of the file @lock
// for each name. The kernel releases it when the process dies, and two holders in one
// process exclude each other as two processes do.
type hold struct {
	file  *os.File
	gates []chan struct{}
}

// gateCount is the number of gates of a backend. The gate of a byte lets one hold pass at a
// time, so that goroutines of one process wait in a queue, and do not try again and again.
// (It has nothing to do with the gates of package backend.)
const gateCount = 64

// counterByte is the byte of @lock for @counter. Names have other bytes.
const counterByte = 0

func lockByte(name string) int64 {
	h := fnv.New64a()
	io.WriteString(h, name)
	return 1 + int64(h.Sum64()>>2)
}

// bounded returns a context that ends with ctx, or after the lock timeout with an error that
// says what to do.
func (s *session) bounded(ctx context.Context, name string) (context.Context, context.CancelFunc) {
	limit := s.b.lockTimeout
	return context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("%w: others have held the lock of %s for %v; if a process is stopped in the middle of a write, let it go on or end it (lsof %s)",
			backend.ErrUnavailable, name, limit, s.b.dir.lock()))
}

// acquire locks the names. It blocks until it has locked all, or ctx ends.
func (b *Backend) acquire(ctx context.Context, mode int16, names ...string) (*hold, error) {
	var bytes []int64
	for _, name := range names {
		bytes = append(bytes, lockByte(name))
	}
	slices.Sort(bytes) // everybody locks in this order, so no two wait for each other
	bytes = slices.Compact(bytes)

	h := new(hold)
	if err := b.enter(ctx, h, bytes); err != nil {
		h.release()
		return nil, err
	}
	err := errReplaced
	for errors.Is(err, errReplaced) && ctx.Err() == nil {
		err = h.lock(ctx, b, mode, bytes)
	}
	if errors.Is(err, errReplaced) {
		err = context.Cause(ctx)
	}
	if err != nil {
		h.release()
		return nil, err
	}
	return h, nil
}

// enter passes the gates of the bytes.
func (b *Backend) enter(ctx context.Context, h *hold, bytes []int64) error {
	var gates []int64
	for _, at := range bytes {
		gates = append(gates, at%gateCount)
	}
	slices.Sort(gates)
	for _, i := range slices.Compact(gates) {
		select {
		case b.gates[i] <- struct{}{}:
			h.gates = append(h.gates, b.gates[i])
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

var errReplaced = errors.New("the lock file was replaced")

// lock opens the lock file and locks the bytes in it.
func (h *hold) lock(ctx context.Context, b *Backend, mode int16, bytes []int64) error {
	if h.file != nil {
		h.file.Close()
	}
	var err error
	path := b.dir.lock()
	h.file, err = b.dir.openLock()
	if errors.Is(err, os.ErrNotExist) && mode == exclusive { // there was no folder yet, or it was removed
		if err = b.dir.make(); err == nil {
			err = errReplaced
		}
	}
	if err != nil {
		return err
	}
	for _, at := range bytes {
		if err := h.try(ctx, mode, at); err != nil {
			return err
		}
	}
	mine, err := h.file.Stat()
	if err != nil {
		return err
	}
	if present, err := os.Stat(path); err != nil || !os.SameFile(mine, present) {
		return errReplaced // it was removed while we waited: others lock another file
	}
	return nil
}

// try locks one byte. To wait in the kernel would block a thread and could not be cancelled.
// So it tries again, after pauses with jitter. They are short, because locks are held for
// milliseconds.
func (h *hold) try(ctx context.Context, mode int16, at int64) error {
	pause := backoff.Backoff{Min: 50 * time.Microsecond, Max: 4 * time.Millisecond}
	for {
		lk := unix.Flock_t{Type: mode, Whence: io.SeekStart, Start: at, Len: 1}
		err := unix.FcntlFlock(h.file.Fd(), unix.F_OFD_SETLK, &lk)
		if err == nil {
			return nil
		}
		if err != unix.EAGAIN && err != unix.EACCES && err != unix.EINTR {
			return &os.PathError{Op: "lock", Path: h.file.Name(), Err: err}
		}
		if err := pause.Sleep(ctx); err != nil {
			return err
		}
	}
}

// release unlocks all names at once.
func (h *hold) release() {
	if h.file != nil {
		h.file.Close()
	}
	for _, gate := range h.gates {
		<-gate
	}
}
