//go:build linux

package local

import (
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/fsnotify/fsnotify"

	"github.com/succession-dev/succession/backend"
)

// TmpFile returns the file that is written before the state of name is replaced.
func TmpFile(dir, name string) string { return (&folder{path: dir}).tmp(lockByte(name)) }

// PrepareDefault prepares path as if it were the default folder.
func PrepareDefault(path string) (fs.FileMode, error) {
	return (&folder{path: path, own: true}).prepare()
}

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
	b.mu.Lock()
	s := b.session
	b.mu.Unlock()
	if s == nil {
		return
	}
	s.stop(fmt.Errorf("%w: its process was killed", backend.ErrSessionEnded))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.places {
		p.file.Close()
	}
}
