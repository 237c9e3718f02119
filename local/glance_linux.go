package local

import (
	"io"
	"sync"

	"golang.org/x/sys/unix"
)

// Glances are holds of readers, if no lock is in the way. They share one descriptor of @lock, which
// stays open, because an heir is on its way to leadership. One glance is taken at a time. A reader
// that finds another one under way, or a byte locked, acquires a hold of its own.
type glances struct {
	mu     sync.Mutex // held by the reader
	fd     int        // of @lock, if open is true
	open   bool
	closed bool
	is     unix.Stat_t // what fd is
}

// lookAt runs fn while nobody decides about the name. If it cannot do so at once, done is false.
func (f *folder) lookAt(name string, fn func() error) (done bool, err error) {
	g := &f.glance
	if !g.mu.TryLock() {
		return false, nil
	}
	defer g.mu.Unlock()
	if g.closed || !g.open && !g.reopen(f) {
		return false, nil
	}
	lk := unix.Flock_t{Type: shared, Whence: io.SeekStart, Start: lockByte(name), Len: 1}
	if unix.FcntlFlock(uintptr(g.fd), unix.F_OFD_SETLK, &lk) != nil {
		return false, nil
	}
	defer func() {
		lk.Type = unlocked
		if unix.FcntlFlock(uintptr(g.fd), unix.F_OFD_SETLK, &lk) != nil {
			g.shut() // which unlocks it, too
		}
	}()
	if f.do(func(top dir) error { return top.isLock(&g.is) }) != nil {
		g.shut() // it was replaced: others lock another file
		return false, nil
	}
	return true, fn()
}

// reopen opens the lock file.
func (g *glances) reopen(f *folder) bool {
	err := f.do(func(top dir) (err error) {
		g.fd, err = top.openLock(openFor(look))
		return err
	})
	if err != nil {
		return false
	}
	g.open = unix.Fstat(g.fd, &g.is) == nil
	if !g.open {
		unix.Close(g.fd)
	}
	return g.open
}

// shut closes the lock file.
func (g *glances) shut() {
	if g.open {
		unix.Close(g.fd)
	}
	g.open = false
}

// close ends glances.
func (g *glances) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.shut()
}
