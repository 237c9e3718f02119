package local

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// An inotify tells of changes of files and folders (inotify(7)). What the kernel watches is the file that was at a path when
// add was called, wherever that is moved to. So each path has the watch of what was there at its last add, and a watch tells of
// all paths that have it.
type inotify struct {
	file    *os.File
	mu      sync.Mutex
	watches map[string]watching // by path
	paths   map[int][]string    // by watch
}

// A watching is a watch of a path, and which changes it tells of at least.
type watching struct {
	watch int
	of    uint32
}

// told are the changes that count. Those of a folder's own place do not end its watch, as it may be moved back.
const told = unix.IN_ATTRIB | unix.IN_MODIFY | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_MOVE_SELF | unix.IN_DELETE_SELF

// openInotify is a variable so that tests can do without inotify.
var openInotify = func() (*inotify, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	return &inotify{file: os.NewFile(uintptr(fd), "inotify"), watches: make(map[string]watching), paths: make(map[int][]string)}, nil
}

// control calls fn with the descriptor, which stays open meanwhile.
func (i *inotify) control(fn func(fd int) error) error {
	raw, err := i.file.SyscallConn()
	if err != nil {
		return err
	}
	if failed := raw.Control(func(fd uintptr) { err = fn(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

// add watches what is at the path for such changes. same says that it has been watched for them since an earlier call for the path. If
// it has not, what would have been told must be looked for, and if that call has watched something else, that is watched no longer. One
// call is made at a time.
func (i *inotify) add(path string, of uint32) (same bool, err error) {
	var w int
	err = i.control(func(fd int) (err error) { // this may wait for the disk, so nobody waits for it
		w, err = unix.InotifyAddWatch(fd, path, of|unix.IN_MASK_ADD)
		return err
	})
	if err != nil {
		return false, &os.PathError{Op: "watch", Path: path, Err: err}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	old, known := i.watches[path]
	if known && old.watch == w {
		i.watches[path] = watching{w, old.of | of}
		return old.of&of == of, nil
	}
	i.forget(path)
	i.watches[path], i.paths[w] = watching{w, of}, append(i.paths[w], path)
	return false, nil
}

// remove ends the watch of a path.
func (i *inotify) remove(path string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget(path)
}

// forget is remove for a caller that holds the lock.
func (i *inotify) forget(path string) {
	old, known := i.watches[path]
	if !known {
		return
	}
	w := old.watch
	delete(i.watches, path)
	i.paths[w] = slices.DeleteFunc(i.paths[w], func(other string) bool { return other == path })
	if len(i.paths[w]) == 0 {
		delete(i.paths, w)
		_ = i.control(func(fd int) error { // fails if the file, and so its watch, has gone
			_, err := unix.InotifyRmWatch(fd, uint32(w))
			return err
		})
	}
}

// close ends read. It is called once.
func (i *inotify) close() { i.file.Close() }

// read calls changed with each path that is watched and may have changed, and with the path of what may have changed in a folder that
// is watched. It calls lost when it cannot know of all. It returns after close.
func (i *inotify) read(changed func(path string), lost func()) {
	buf := make([]byte, 64<<10)
	for {
		n, err := i.file.Read(buf)
		if err != nil {
			return
		}
		i.tell(buf[:n], changed, lost)
	}
}

// tell calls changed and lost for events as the kernel writes them.
func (i *inotify) tell(events []byte, changed func(path string), lost func()) {
	for len(events) >= unix.SizeofInotifyEvent {
		w := int(int32(binary.NativeEndian.Uint32(events)))
		mask, length := binary.NativeEndian.Uint32(events[4:]), binary.NativeEndian.Uint32(events[12:])
		name := strings.TrimRight(string(events[unix.SizeofInotifyEvent:][:length]), "\x00")
		events = events[unix.SizeofInotifyEvent+length:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			lost()
			continue
		}
		if mask&unix.IN_IGNORED != 0 {
			i.ended(w)
			continue
		}
		for _, path := range i.at(w) {
			if name != "" {
				path = strings.TrimSuffix(path, "/") + "/" + name
			}
			changed(path)
		}
	}
}

// at returns the paths of a watch.
func (i *inotify) at(w int) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.paths[w])
}

// ended notes that the kernel has ended a watch.
func (i *inotify) ended(w int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, path := range i.paths[w] {
		delete(i.watches, path)
	}
	delete(i.paths, w)
}
