package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// The modes of a lock on one byte.
const (
	shared    = unix.F_RDLCK
	exclusive = unix.F_WRLCK
	unlocked  = unix.F_UNLCK
)

// A hold is a lock on one or more names, against other processes and against others in this
// process. It is made of open file description locks (F_OFD_SETLK, fcntl(2)) on bytes of the
// file @lock. The kernel releases them when the process dies, and two holders in one process
// exclude each other as two processes do.
type hold struct {
	folder *folder
	fd     int // of @lock, if open is true. Package os would offer it to the poller.
	open   bool
	gates  []*gate
}

// A claim says what a hold locks of one name.
type claim struct {
	name string
	purpose
}

// A purpose says what a claim keeps out.
type purpose int

const (
	// look keeps out deciders. A candidate that looks on its way to leadership claims this.
	look purpose = iota
	// write keeps out other writers and deciders, but not readers, which see the name as it was
	// before or after the write.
	write
	// decide keeps out everybody. It is for changes for which readers must wait: a write on
	// condition of a member, or a pin.
	decide
)

// A gate lets one hold of this process at a time pass to a name, so that goroutines of one process wait in
// a queue, and do not try again and again. (It has nothing to do with the gates of package backend.)
type gate struct {
	name   string
	passes chan struct{} // full while a hold has passed
	users  int           // how many wait or have passed; guarded by the folder's mu
}

// pass passes the gate of a name. It blocks until no other hold of this process is between pass and
// free, or ctx ends.
func (f *folder) pass(ctx context.Context, name string) (*gate, error) {
	g := f.gate(name)
	select {
	case g.passes <- struct{}{}:
		return g, nil
	default:
	}
	select {
	case g.passes <- struct{}{}:
		return g, nil
	case <-ctx.Done():
		f.leave(g)
		return nil, context.Cause(ctx)
	}
}

// free lets the next one pass the gate.
func (f *folder) free(g *gate) {
	<-g.passes
	f.leave(g)
}

// gate returns the gate of a name. The caller calls leave once.
func (f *folder) gate(name string) *gate {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.gates[name]
	if g == nil {
		g = &gate{name: name, passes: make(chan struct{}, 1)}
		f.gates[name] = g
	}
	g.users++
	return g
}

func (f *folder) leave(g *gate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.users--; g.users == 0 {
		delete(f.gates, g.name)
	}
}

// counterByte is the byte of @lock for @counter. Each name has three other bytes.
const counterByte = 0

// lockByte returns the byte of a name. Readers lock it shared, and deciders exclusively.
func lockByte(name string) int64 {
	h := fnv.New64a()
	io.WriteString(h, name)
	return 1 + int64(h.Sum64()>>2)
}

// writeByte returns the byte of a name that a writer locks exclusively; it locks lockByte shared.
// Earlier versions lock only lockByte, and exclusively.
func writeByte(name string) int64 { return lockByte("@write/" + name) } // no name contains '@'

// turnByte returns the byte of a name that the next writer or decider locks exclusively. Without
// it, a process that writes again and again could keep others waiting for long.
func turnByte(name string) int64 { return lockByte("@turn/" + name) }

// A byteLock is a lock on one byte.
type byteLock struct {
	at   int64
	mode int16
}

// locks returns the bytes that claims lock. All lock in this order, so that no two wait for each
// other: the turns, which are unlocked when all others are locked, then the bytes of writers, and
// then those of the names. Each kind is sorted.
func locks(claims []claim) (turns, rest []byteLock) {
	var names []byteLock
	for _, c := range claims {
		mode := int16(shared)
		if c.purpose == decide {
			mode = exclusive
		}
		names = append(names, byteLock{lockByte(c.name), mode})
		if c.purpose != look {
			turns = append(turns, byteLock{turnByte(c.name), exclusive})
		}
		if c.purpose == write {
			rest = append(rest, byteLock{writeByte(c.name), exclusive})
		}
	}
	for _, kind := range [][]byteLock{turns, rest, names} {
		slices.SortFunc(kind, func(a, b byteLock) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.mode, b.mode)) })
	}
	return turns, append(rest, names...)
}

// bounded returns a context that ends with ctx, or after the lock timeout with an error that
// says what to do.
func (s *session) bounded(ctx context.Context, name string) (context.Context, context.CancelFunc) {
	limit := s.b.lockTimeout
	return context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("%w: others have held the lock of %s for %v; if a process is stopped in the middle of a write, let it go on or end it (lsof %s)",
			backend.ErrUnavailable, name, limit, s.dir.lock()))
}

// acquire locks the names. It blocks until it has locked all, or ctx ends.
func (f *folder) acquire(ctx context.Context, claims ...claim) (*hold, error) {
	h := &hold{folder: f}
	if err := h.enter(ctx, claims); err != nil {
		h.release()
		return nil, err
	}
	err := errReplaced
	for errors.Is(err, errReplaced) && ctx.Err() == nil {
		err = h.lock(ctx, claims)
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

// enter passes the gates of the names. A reader passes none, because a writer may stand in the gate
// for as long as the disk takes.
func (h *hold) enter(ctx context.Context, claims []claim) error {
	var names []string
	for _, c := range claims {
		if c.purpose != look {
			names = append(names, c.name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		g, err := h.folder.pass(ctx, name)
		if err != nil {
			return err
		}
		h.gates = append(h.gates, g)
	}
	return nil
}

var errReplaced = errors.New("the lock file was replaced")

// reopen opens the lock file.
//
// Only one writer at a time opens it. There may be hundreds of writers, and one more descriptor may
// make the kernel enlarge the process's table of descriptors, which takes some milliseconds
// (expand_fdtable, fs/file.c). Each goroutine that opened a file meanwhile would hold a thread for
// that time, and Go would keep the thread for good.
func (h *hold) reopen(p purpose) error {
	f := h.folder
	h.close()
	if p != look {
		f.opening.Lock()
		defer f.opening.Unlock()
	}
	open := func(top dir) (err error) {
		h.fd, err = top.openLock(openFor(p))
		h.open = err == nil
		return err
	}
	err := f.do(open)
	if errors.Is(err, fs.ErrNotExist) && p != look && f.top.Load() == nil { // there was no folder yet
		if err = f.makeTop(); err == nil {
			err = f.do(open)
		}
	}
	return err
}

// lock opens the lock file and locks the bytes in it.
func (h *hold) lock(ctx context.Context, claims []claim) error {
	if err := h.reopen(claims[0].purpose); err != nil {
		return err
	}
	turns, rest := locks(claims)
	for _, l := range append(turns, rest...) {
		if err := h.try(ctx, l.mode, l.at); err != nil {
			return err
		}
	}
	for _, l := range turns {
		if err := h.try(ctx, unlocked, l.at); err != nil {
			return err
		}
	}
	return h.folder.do(func(top dir) error {
		var mine unix.Stat_t
		if err := unix.Fstat(h.fd, &mine); err != nil {
			return err
		}
		return top.isLock(&mine)
	})
}

// openFor returns the flag with which the lock file is opened. A shared lock needs only O_RDONLY.
// So a reader can still look when the file system has become read-only.
func openFor(p purpose) int {
	if p == look {
		return unix.O_RDONLY
	}
	return unix.O_RDWR
}

// isLock fails with errReplaced if is, which the caller has open, is not the lock file that others
// lock: it was removed meanwhile.
func (d dir) isLock(is *unix.Stat_t) error {
	if present, err := d.stat(lockName); err != nil || present.Dev != is.Dev || present.Ino != is.Ino {
		return errReplaced
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
		err := unix.FcntlFlock(uintptr(h.fd), unix.F_OFD_SETLK, &lk)
		if err == nil {
			return nil
		}
		if err != unix.EAGAIN && err != unix.EACCES && err != unix.EINTR {
			return &os.PathError{Op: "lock", Path: h.folder.lock(), Err: err}
		}
		if err := pause.Sleep(ctx); err != nil {
			return err
		}
	}
}

// release unlocks all names at once.
func (h *hold) release() {
	h.close()
	for _, g := range h.gates {
		h.folder.free(g)
	}
}

func (h *hold) close() {
	if h.open {
		unix.Close(h.fd)
	}
	h.open = false
}
