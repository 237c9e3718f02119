package local

import (
	"errors"
	"io/fs"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// A place is the open FIFO of one member that this process holds. Only its session uses it.
type place struct {
	dir      *folder
	line     string
	position uint64
	fd       int // of the FIFO, which is open for reading and writing, and locked
	pinned   bool
	lent     bool // others may have the FIFO open; see [session.Files]
	known
	rest func() // the work that WatchPlace left when the member was first; nil if none
}

// stand makes the FIFO of a member of the line of d and locks it. It fails with [fs.ErrNotExist] if d was removed. The caller holds the line's lock, and
// @line does not list the member yet, so nobody else looks at the FIFO before it is locked, but for those who
// have found a @line that a power loss had torn; see [dir.line]. They hold it for a moment.
func (f *folder) stand(d dir, line string, position uint64) (*place, error) {
	name := fifoName(position)
	if err := unix.Mkfifoat(d.fd, name, 0o600); err != nil {
		return nil, d.fail("mkfifo", name, err)
	}
	// The FIFO must have a writer as long as the member stands. To open it for writing only
	// fails as long as there is no reader, but Linux can open it for both (fifo(7)). It is not
	// opened with package os, which would give the descriptor to the poller.
	fd, is, err := d.open(name, unix.O_RDWR, unix.S_IFIFO)
	if err != nil {
		_ = d.remove(name)
		return nil, err
	}
	p := &place{dir: f, line: line, position: position, fd: fd}
	p.known = known{own: true, path: d.path(name), dev: is.Dev, ino: is.Ino, front: position - 1}
	if err = d.giveMade(fd, name, unix.S_IFIFO, d.top.filePerm()); err == nil {
		err = lockNow(fd, unix.LOCK_EX)
		for tries := 0; err == unix.EWOULDBLOCK && tries < 1000; tries++ {
			time.Sleep(50 * time.Microsecond)
			err = lockNow(fd, unix.LOCK_EX)
		}
		if err != nil {
			err = d.fail("lock", name, err)
		}
	}
	if err != nil {
		p.letGo()
		_ = d.remove(name)
		return nil, err
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

// finish does the work that WatchPlace has left. It is called once.
func (p *place) finish() {
	if p.rest != nil {
		p.rest()
	}
}

// remove removes the FIFO. If it fails after letGo, a later Join removes the FIFO, unless a process stands by a descriptor that was lent.
func (p *place) remove() error { return p.dir.remove(p.line, p.position) }

// headHint is RWH_WRITE_LIFE_SHORT (include/uapi/linux/fcntl.h).
const headHint = 2

// setHead marks the FIFO of a member in front of which nobody stands. The kernel keeps the mark
// with the inode, in memory, as long as the FIFO is open, and wakes nobody: it is a hint about the
// life of data (F_SET_RW_HINT, fcntl(2)), which means nothing for a FIFO. If it cannot be set, the
// candidate behind the member tests more members once that has gone.
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

// A presence says what the kernel knows of a member.
type presence int

const (
	removed presence = iota // there is no FIFO
	dead                    // there is one, and nobody holds it
	held                    // somebody holds it
)

// probe returns the presence of the member of the line of d at a position. It does not block. The
// shared lock that it takes for a moment disturbs nobody: once nobody holds a FIFO, nobody
// locks it exclusively again.
func (d dir) probe(position uint64) (presence, error) { return d.probeFIFO(fifoName(position)) }

// probeFIFO is probe for a file that may also be that of a member who is just joining; see [dir.line].
func (d dir) probeFIFO(name string) (presence, error) {
	// Not with package os, which would give the descriptor to the poller.
	fd, _, err := d.open(name, unix.O_RDONLY, unix.S_IFIFO)
	if errors.Is(err, fs.ErrNotExist) {
		return removed, nil
	}
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	switch err := lockNow(fd, unix.LOCK_SH); err {
	case nil:
		return dead, nil
	case unix.EWOULDBLOCK:
		return held, nil
	default:
		return 0, d.fail("flock", name, err)
	}
}

// probe is [dir.probe] for callers that have not opened the line's folder.
func (f *folder) probe(m backend.Member) (presence, error) {
	d, err := f.dir(m.Line)
	if errors.Is(err, fs.ErrNotExist) {
		return removed, nil
	}
	if err != nil {
		return 0, err
	}
	defer d.close()
	return d.probe(m.Position)
}

// openFIFO opens a member's FIFO for reading, which does not block.
func (f *folder) openFIFO(m backend.Member) (*os.File, error) {
	d, err := f.dir(m.Line)
	if err != nil {
		return nil, err
	}
	defer d.close()
	name := fifoName(m.Position)
	fd, _, err := d.open(name, unix.O_RDONLY, unix.S_IFIFO)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), d.path(name)), nil // which does not block, and so goes to the poller
}

func lockNow(fd, how int) error {
	for {
		if err := unix.Flock(fd, how|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}
