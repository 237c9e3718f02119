//go:build linux

package local

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"sync"
	"testing"

	"github.com/fsnotify/fsnotify"
)

// TmpFile returns the file that is written before the state of name is replaced.
func TmpFile(dir, name string) string { return (&folder{path: dir}).tmp(lockByte(name)) }

// MakeDefault makes and prepares path as if it were the default folder.
func MakeDefault(path string) (fs.FileMode, error) {
	f := &folder{path: path, own: true}
	if err := f.make(); err != nil {
		return 0, err
	}
	return f.rights.Load().perm, f.close()
}

// StopBeforeStore is what is left of a writer of name that is stopped when it has taken its
// number. The func that it returns lets it go.
func StopBeforeStore(ctx context.Context, b *Backend, name string) (goOn func(), err error) {
	h, err := b.acquire(ctx, claim{name, decide})
	if err != nil {
		return nil, err
	}
	_, err = b.next(ctx, h, 0)
	return h.release, err
}

// StopInJoin is what is left of somebody who is stopped while it joins the line. The func that it
// returns lets it go.
func StopInJoin(ctx context.Context, b *Backend, line string) (goOn func(), err error) {
	h, err := b.acquire(ctx, claim{line, write})
	if err != nil {
		return nil, err
	}
	return h.release, nil
}

// Joining returns how many wait to join the line.
func Joining(b *Backend, line string) int {
	s := b.sessions.Newest().(*session)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.joins[line])
}

// LockByte returns the byte of @lock that earlier versions lock to write to a name.
func LockByte(name string) int64 { return lockByte(name) }

// IsHead reports whether the FIFO is marked as that of the first in line.
func IsHead(fifo *os.File) bool { return isHead(int(fifo.Fd())) }

// SetNewWatcher replaces what opens inotify, until the test ends.
func SetNewWatcher(t *testing.T, open func() (*fsnotify.Watcher, error)) {
	var mu sync.Mutex
	old := newWatcher
	newWatcher = func() (*fsnotify.Watcher, error) {
		mu.Lock()
		defer mu.Unlock()
		return open()
	}
	t.Cleanup(func() { newWatcher = old })
}

// Abandon lets go of all that the backend's session holds, as the kernel does when
// a process dies. Nothing of the process goes on then, so the session ends first.
func Abandon(b *Backend) {
	s, _ := b.sessions.Newest().(*session)
	if s == nil {
		return
	}
	s.mu.Lock()
	places := maps.Clone(s.places)
	clear(s.places)
	s.mu.Unlock()
	s.End(errors.New("its process was killed"))
	for _, p := range places {
		p.letGo()
		p.finish()
	}
}
