package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A place is the open FIFO of one member that this process holds. Only its session uses it.
type place struct {
	line   string
	path   string // of the FIFO
	fd     int    // of the FIFO, which is open for reading and writing, and locked
	pinned bool
	known
	rest func() // what WatchPlace has left to do when it was found first; nil for nothing
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
	// fails as long as there is no reader, but Linux can open it for both (fifo(7)). It is not
	// opened with package os, which would give the descriptor to the poller.
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		os.Remove(path)
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var is unix.Stat_t
	p := &place{line: line, path: path, fd: fd}
	if err = unix.Fstat(fd, &is); err == nil {
		p.known = known{own: true, ino: is.Ino, front: position - 1}
		err = f.give(fd, f.filePerm())
	}
	if err == nil {
		err = lockNow(fd, unix.LOCK_EX)
	}
	if err != nil {
		p.letGo()
		p.remove()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return p, nil
}

// hold returns a second descriptor of the open file. It holds the lock too: the kernel
// releases that when the last descriptor is closed (flock(2)).
func (p *place) hold() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "dup", Path: p.path, Err: err}
	}
	return os.NewFile(uintptr(fd), p.path), nil
}

// letGo closes the FIFO. This wakes the candidate behind.
func (p *place) letGo() { unix.Close(p.fd) }

// finish does what WatchPlace has left to do. Only one calls it.
func (p *place) finish() {
	if p.rest != nil {
		p.rest()
	}
}

// remove removes the FIFO unless the member is pinned. If it fails, a later Join removes the FIFO.
func (p *place) remove() {
	if !p.pinned {
		os.Remove(p.path)
	}
}

// headHint is RWH_WRITE_LIFE_SHORT (include/uapi/linux/fcntl.h).
const headHint = 2

// setHead says of the FIFO of a member that nobody stands in front of it. The kernel keeps that
// with the inode as long as anybody has the FIFO open, on no disk, and wakes nobody: it is a hint
// about the life of data (F_SET_RW_HINT, fcntl(2)), which means nothing for a FIFO. If it cannot
// be set, whoever waits behind the member looks further once it has gone.
func setHead(fd int) {
	hint := uint64(headHint)
	_, _, _ = unix.Syscall(unix.SYS_FCNTL, uintptr(fd), unix.F_SET_RW_HINT, uintptr(unsafe.Pointer(&hint)))
}

// isHead reports whether setHead was called for the FIFO.
func isHead(fd int) bool {
	var hint uint64
	_, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(fd), unix.F_GET_RW_HINT, uintptr(unsafe.Pointer(&hint)))
	return errno == 0 && hint == headHint
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

// isAt reports whether path is the file with the number ino, which this process has open: so no other
// file of the file system has that number.
func isAt(path string, ino uint64) bool {
	var is unix.Stat_t
	return unix.Lstat(path, &is) == nil && is.Ino == ino
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
