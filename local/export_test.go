//go:build linux

package local

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TmpFile returns the file that is written before the state of name is replaced.
func TmpFile(dir, name string) string { return filepath.Join(dir, tmp(lockByte(name))) }

// MakeDefault makes and opens path as if it were the default folder, and returns its rights.
func MakeDefault(path string) (perm uint32, err error) {
	f := newFolder(path, true, new(past))
	if err := f.makeTop(); err != nil {
		return 0, err
	}
	perm = f.top.Load().perm
	return perm, f.close()
}

// GiveMade does what is done with a FIFO, or a folder, that has just been made in the folder at path, when it is opened.
func GiveMade(path, file string, kind uint32) error {
	f := newFolder(path, false, new(past))
	defer f.close()
	return f.do(func(top dir) error {
		fd, err := unix.Openat(top.fd, file, unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return top.giveMade(fd, file, kind, 0o660)
	})
}

// Touch touches a file of the folder at path, as Pin does with the FIFO of the member.
func Touch(path, file string) error {
	f := newFolder(path, false, new(past))
	defer f.close()
	return f.do(func(top dir) error { top.touch(file); return nil })
}

// folderOf returns the folder of the backend's session.
func folderOf(b *Backend) *folder { return b.sessions.Newest().(*session).dir }

// StopBeforeStore is what is left of a writer of name that is stopped when it has taken its
// number. The func that it returns lets it go.
func StopBeforeStore(ctx context.Context, b *Backend, name string) (goOn func(), err error) {
	f := folderOf(b)
	h, err := f.acquire(ctx, claim{name, decide})
	if err != nil {
		return nil, err
	}
	_, err = f.next(ctx, h, 0)
	return h.release, err
}

// StopInDraw is what is left of a writer of name that is stopped while it takes a number. The func that it
// returns lets it go.
func StopInDraw(ctx context.Context, b *Backend, name string) (goOn func() error, err error) {
	f := folderOf(b)
	h, err := f.acquire(ctx, claim{name, decide})
	if err != nil {
		return nil, err
	}
	c, unlock, err := f.lockCounter(ctx, h)
	if err != nil {
		h.release()
		return nil, err
	}
	return func() error {
		defer h.release()
		defer unlock()
		_, err := f.draw(c, 0, 1)
		return err
	}, nil
}

// StopInJoin is what is left of somebody who is stopped while it joins the line. The func that it
// returns lets it go.
func StopInJoin(ctx context.Context, b *Backend, line string) (goOn func(), err error) {
	h, err := folderOf(b).acquire(ctx, claim{line, write})
	if err != nil {
		return nil, err
	}
	return h.release, nil
}

// StallDisk has syncs wait until the test calls the func that answers then has, or ends.
func StallDisk(t *testing.T) (answers <-chan func()) {
	old, asked, answer := fsync, make(chan func(), 1), make(chan struct{})
	free := sync.OnceFunc(func() { close(answer) })
	fsync = func(fd int) error {
		select {
		case asked <- free:
		default:
		}
		<-answer
		return old(fd)
	}
	t.Cleanup(func() { free(); fsync = old })
	return asked
}

// DrawUnlocked takes a number without a file whose bytes could be locked.
func DrawUnlocked(ctx context.Context, b *Backend) error {
	f := folderOf(b)
	_, _, err := f.lockCounter(ctx, &hold{folder: f, fd: -1})
	return err
}

// Joining returns how many wait to join the line.
func Joining(b *Backend, line string) int {
	s := b.sessions.Newest().(*session)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.joins[queue{line: line}])
}

// LockByte returns the byte of @lock that earlier versions lock to write to a name.
func LockByte(name string) int64 { return lockByte(name) }

// IsHead reports whether the FIFO is marked as that of the first in line.
func IsHead(fifo *os.File) bool { return isHead(int(fifo.Fd())) }

// RefuseNoReplace makes renames that must replace nothing fail, as some file systems do, until the test ends.
func RefuseNoReplace(t *testing.T) {
	old := renameat2
	renameat2 = func(int, string, int, string, uint) error { return unix.EINVAL }
	t.Cleanup(func() { renameat2 = old })
}

// BeforeMkdir has what makes the top folder call f before it makes the first one, until the test ends.
func BeforeMkdir(t *testing.T, f func()) {
	old, once := mkdirat, sync.OnceFunc(f)
	mkdirat = func(at int, path string, mode uint32) error { once(); return old(at, path, mode) }
	t.Cleanup(func() { mkdirat = old })
}

// OpenLock opens the lock file of the folder at path, as a process does at first use.
func OpenLock(path string) (file *os.File, err error) {
	f := newFolder(path, false, new(past))
	defer f.close()
	err = f.do(func(top dir) error {
		fd, err := top.openLock(unix.O_RDWR)
		if err == nil {
			file = os.NewFile(uintptr(fd), path)
		}
		return err
	})
	return file, err
}

// WithoutInotify has no instance of inotify be left for anybody until the test ends.
func WithoutInotify(t *testing.T) {
	old := openInotify
	openInotify = noInotify
	t.Cleanup(func() { openInotify = old })
}

func noInotify() (*inotify, error) { return nil, unix.EMFILE }

// Heard returns the events that the backend has asked the kernel for, of a folder (proc_pid_fdinfo(5)).
func Heard(t *testing.T, b *Backend, folder string) (mask uint32) {
	t.Helper()
	var is unix.Stat_t
	if err := unix.Stat(folder, &is); err != nil {
		t.Fatal(err)
	}
	err := b.watches.inotify.control(func(fd int) error {
		info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
		for line := range strings.Lines(string(info)) {
			var wd, dev, of uint32
			var ino uint64
			if _, bad := fmt.Sscanf(line, "inotify wd:%x ino:%x sdev:%x mask:%x", &wd, &ino, &dev, &of); bad == nil && ino == is.Ino {
				mask = of
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return mask
}

// Adds watches a folder for removals, for all, for removals again, and for all again, and returns whether it was watched so before.
func Adds(t *testing.T, folder string) (same []bool) {
	t.Helper()
	i, err := openInotify()
	if err != nil {
		t.Fatal(err)
	}
	defer i.close()
	for _, of := range []uint32{unix.IN_DELETE, told, unix.IN_DELETE, told} {
		was, err := i.add(folder, of)
		if err != nil {
			t.Fatal(err)
		}
		same = append(same, was)
	}
	return same
}

// StallInotify has the backend take no event of inotify until goOn is called.
func StallInotify(b *Backend) (goOn func()) {
	b.watches.inotify.mu.Lock()
	return b.watches.inotify.mu.Unlock
}

// Overflow tells the backend what the kernel tells when it has dropped events (inotify(7)): how many that takes is a setting of the machine.
func Overflow(b *Backend) {
	event := binary.NativeEndian.AppendUint32(nil, math.MaxUint32) // -1
	event = binary.NativeEndian.AppendUint32(event, unix.IN_Q_OVERFLOW)
	event = append(event, make([]byte, unix.SizeofInotifyEvent-len(event))...)
	b.watches.inotify.tell(event, b.watches.changed, b.watches.lost)
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
