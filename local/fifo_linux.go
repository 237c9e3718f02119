package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A place is the open FIFO of one member that this process holds. Only its session uses it.
type place struct {
	path   string
	file   *os.File // open for reading and writing, and locked
	pinned bool
}

// stand makes the FIFO of a member and locks it. The caller holds the line's lock, and
// @state does not list the member yet, so nobody else looks at the FIFO before it is locked.
func (f *folder) stand(line string, position uint64) (*place, error) {
	path := f.fifo(line, position)
	var err error
	for range 100 { // as in rename
		if err = f.mkdir(filepath.Dir(path)); err == nil {
			err = unix.Mkfifo(path, uint32(f.filePerm()))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	// The FIFO must have a writer as long as the member stands. To open it for writing only
	// fails as long as there is no reader, but Linux can open it for both (fifo(7)).
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		os.Remove(path)
		return nil, err
	}
	p := &place{path: path, file: file}
	err = f.give(file, f.filePerm())
	if err == nil {
		if err = flock(file, unix.LOCK_EX); err != nil {
			err = &fs.PathError{Op: "flock", Path: path, Err: err}
		}
	}
	if err != nil {
		p.leave()
		return nil, err
	}
	return p, nil
}

// hold returns a second descriptor of the open file. It holds the lock too: the kernel
// releases that when the last descriptor is closed (flock(2)).
func (p *place) hold() (*os.File, error) {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var failed error
	if err := raw.Control(func(own uintptr) { fd, failed = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, &fs.PathError{Op: "dup", Path: p.path, Err: failed}
	}
	return os.NewFile(uintptr(fd), p.path), nil
}

// leave closes the FIFO, and removes it unless the member is pinned.
func (p *place) leave() {
	p.file.Close() // this wakes the candidate behind
	if !p.pinned {
		os.Remove(p.path) // if it fails, the next Join removes the FIFO
	}
}

// A presence is what the kernel says of a member.
type presence int

const (
	removed presence = iota // there is no FIFO
	dead                    // there is one, and nobody holds it
	held                    // somebody holds it
)

// probe returns the presence of the member whose FIFO is at path. It does not block. The
// shared lock that it takes for a moment disturbs nobody: once nobody holds a FIFO, nobody
// locks it exclusively again.
func probe(path string) (presence, error) {
	// Not with package os, which would give the descriptor to the poller.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return removed, nil
	}
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	switch err := lockNow(fd, unix.LOCK_SH); err {
	case nil:
		return dead, nil
	case unix.EWOULDBLOCK:
		return held, nil
	default:
		return 0, &fs.PathError{Op: "flock", Path: path, Err: err}
	}
}

// openFIFO opens a member's FIFO for reading, which does not block.
func openFIFO(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}

// flock locks an open file, or fails with EWOULDBLOCK.
func flock(file *os.File, how int) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	if err := raw.Control(func(fd uintptr) { locked = lockNow(int(fd), how) }); err != nil {
		return err
	}
	return locked
}

func lockNow(fd, how int) error {
	for {
		if err := unix.Flock(fd, how|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}
