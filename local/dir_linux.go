package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// A dir is an open folder, the top one or one below. All files are reached through a dir, each by a
// name of one step. So a user who may write to a folder can never, by links or by moving folders,
// make this process open, make, change or remove a file elsewhere.
type dir struct {
	fd  int
	top *top
	at  string // its name; "" for the top folder
}

// do calls fn with the top folder, which stays open meanwhile. It fails with [os.ErrClosed] if that was closed.
func (t *top) do(fn func(dir) error) error {
	var err error
	if t.raw.Control(func(fd uintptr) { err = fn(dir{int(fd), t, ""}) }) != nil {
		return os.ErrClosed // its own error says the same, and is none that can be asked for
	}
	return err
}

// do calls fn with the top folder. It fails with [fs.ErrNotExist] if there is none.
func (f *folder) do(fn func(dir) error) error {
	t, err := f.opened()
	if err != nil {
		return err
	}
	return t.do(fn)
}

// dir opens the folder of a name, or the top folder for "". The caller closes it. dir fails with
// [fs.ErrNotExist] if there is no such folder.
func (f *folder) dir(name string) (d dir, err error) {
	err = f.do(func(top dir) (err error) {
		step, rest, more := strings.Cut(name, "/")
		d, err = top.enter(step)
		for err == nil && more {
			above := d
			step, rest, more = strings.Cut(rest, "/")
			d, err = above.enter(step)
			above.close()
		}
		return err
	})
	return d, err
}

// enter opens the folder step of d, or d once more for "". It follows no link. It refuses a folder
// that belongs to a user who may not write to the top folder, and a folder on another file system,
// which other machines may share.
func (d dir) enter(step string) (dir, error) {
	into, err := d.pass(step)
	if err != nil {
		return into, err
	}
	var is unix.Stat_t
	if err = unix.Fstat(into.fd, &is); err != nil {
		err = into.fail("stat", "", err)
	} else {
		err = into.check(&is)
	}
	if err != nil {
		into.close()
	}
	return into, err
}

// pass is enter for any folder, for callers that only look what is below it.
func (d dir) pass(step string) (dir, error) {
	into := dir{top: d.top, at: path.Join(d.at, step)}
	if step == "" {
		step = "."
	}
	var err error
	into.fd, err = unix.Openat(d.fd, step, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch err {
	case nil:
		return into, nil
	case unix.ENOTDIR, unix.ELOOP:
		return into, fmt.Errorf("%w: %s is a link or a file where a folder should be; remove it", backend.ErrDenied, into.path(""))
	default:
		return into, into.fail("open", "", err)
	}
}

func (d dir) check(is *unix.Stat_t) error {
	t := d.top
	switch {
	case is.Dev != t.dev:
		return fmt.Errorf("%w folder %s: it is on another file system than %s", backend.ErrInvalid, d.path(""), t.path)
	case is.Uid != t.uid && is.Uid != 0 && t.perm&0o020 == 0:
		return fmt.Errorf("%w: %s belongs to user %d, who may not write to %s; remove it, or give it to user %d", backend.ErrDenied, d.path(""), is.Uid, t.path, t.uid)
	case is.Mode&0o002 != 0:
		return fmt.Errorf("%w: %s is open to everybody's writing; chmod o-w it", backend.ErrDenied, d.path(""))
	}
	return nil
}

// close closes d; the zero value is no open folder.
func (d dir) close() {
	if d.top != nil {
		unix.Close(d.fd)
	}
}

// path returns the path of a file, for messages.
func (d dir) path(file string) string {
	return filepath.Join(d.top.path, filepath.FromSlash(d.at), file)
}

func (d dir) fail(op, file string, err error) error {
	return &fs.PathError{Op: op, Path: d.path(file), Err: err}
}

// open opens a file that must be of a kind, S_IFREG or S_IFIFO. It never waits, whatever kind of
// file a stranger has put there. It fails with [ErrDamaged] if the file is of another kind. It also
// does if the file has another name elsewhere and does not belong to the folder's owner: a stranger
// may have made that link, and a read from a FIFO takes its contents.
func (d dir) open(file string, flags int, kind uint32) (fd int, is unix.Stat_t, err error) {
	fd, is, err = d.tryOpen(file, flags, kind)
	return fd, is, d.explain("open", file, err)
}

// explain is fail for an error that may be a plain one of the system, or none.
func (d dir) explain(op, file string, err error) error {
	if errno, ok := err.(unix.Errno); ok {
		return d.fail(op, file, errno)
	}
	return err
}

// tryOpen is open without the words around an error of the system: an heir finds that some file is not there.
func (d dir) tryOpen(file string, flags int, kind uint32) (fd int, is unix.Stat_t, err error) {
	flags |= unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err = unix.Openat(d.fd, file, flags, 0)
	if err == unix.EPERM && flags&unix.O_NOATIME != 0 { // only the file's owner and root may have that (open(2))
		fd, err = unix.Openat(d.fd, file, flags&^unix.O_NOATIME, 0)
	}
	switch err {
	case nil:
		if err = unix.Fstat(fd, &is); err != nil {
		} else if is.Mode&unix.S_IFMT != kind {
			err = d.strange(file, kind)
		} else if is.Nlink > 1 && is.Uid != d.top.uid && file != lockName { // @lock has two while it is made
			err = fmt.Errorf("%w: %s is one of several names of a file of user %d. Remove it", ErrDamaged, d.path(file), is.Uid)
		}
		if err != nil {
			unix.Close(fd)
		}
	case unix.ELOOP, unix.ENXIO, unix.EISDIR: // a link, a socket, a folder
		err = d.strange(file, kind)
	}
	return fd, is, err
}

func (d dir) strange(file string, kind uint32) error {
	what := "plain file"
	if kind == unix.S_IFIFO {
		what = "FIFO"
	}
	return fmt.Errorf("%w: %s is no %s. Remove it", ErrDamaged, d.path(file), what)
}

// maxFile is the largest size of a file. Larger files are neither written nor read.
const maxFile = 64 << 20

// read reads a file that is replaced, and never changes in place. It does without package os, which would offer the
// descriptor to the poller and look for more at the end, because an heir reads it on its way to
// leadership.
func (d dir) read(file string) ([]byte, error) {
	data, err := d.tryRead(file)
	return data, d.explain("read", file, err)
}

// tryRead is read as tryOpen is open.
func (d dir) tryRead(file string) ([]byte, error) {
	// Without O_NOATIME the first reader of a file would write the time, and might then wait for a
	// write to the disk that is under way.
	fd, is, err := d.tryOpen(file, unix.O_RDONLY|unix.O_NOATIME, unix.S_IFREG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if is.Size > maxFile {
		return nil, fmt.Errorf("%w: %s has %d bytes, and at most %d are possible. Remove it", ErrDamaged, d.path(file), is.Size, maxFile)
	}
	data := make([]byte, is.Size)
	for done := 0; done < len(data); {
		n, err := unix.Read(fd, data[done:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case n == 0: // the file was cut off
			return data[:done], nil
		default:
			done += n
		}
	}
	return data, nil
}

// stat says what a file is, without following it.
func (d dir) stat(file string) (is unix.Stat_t, err error) {
	if err = unix.Fstatat(d.fd, file, &is, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		err = d.fail("stat", file, err)
	}
	return is, err
}

// remove removes a file. It is not an error if there is none.
func (d dir) remove(file string) error {
	if err := unix.Unlinkat(d.fd, file, 0); err != nil && err != unix.ENOENT {
		return d.fail("remove", file, err)
	}
	return nil
}

// touch only changes the times of a FIFO, so that inotify wakes its watchers. A user who may write
// to the folder may have put something else there, or a link to a file elsewhere: touch leaves that
// alone.
func (d dir) touch(fifo string) {
	fd, err := unix.Openat(d.fd, fifo, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var is unix.Stat_t
	if unix.Fstat(fd, &is) != nil || is.Mode&unix.S_IFMT != unix.S_IFIFO || is.Nlink != 1 {
		return
	}
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	if unix.UtimesNanoAt(fd, "", now, unix.AT_EMPTY_PATH) != nil { // before Linux 5.8
		_ = unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), now, 0)
	}
}

// list returns the names of all files and folders in d. In a folder that is removed meanwhile there is nothing.
func (d dir) list() ([]string, error) {
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) // d has O_PATH, which is not enough
	if err != nil {
		return nil, d.fail("open", "", err)
	}
	defer unix.Close(fd)
	var names []string
	for buf := make([]byte, 4096); ; {
		n, err := unix.ReadDirent(fd, buf)
		switch {
		case err == unix.EINTR:
		case err == unix.ENOENT: // as getdents(2) says of it
			return nil, nil
		case err != nil:
			return nil, d.fail("list", "", err)
		case n == 0:
			return names, nil
		default:
			_, _, names = unix.ParseDirent(buf[:n], -1, names)
		}
	}
}

// has reports whether one of the files is in d, or in a folder below it.
func (d dir) has(files ...string) (bool, error) {
	for _, file := range files {
		if _, err := d.stat(file); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// folders returns the names of the folders in d that can be the step of a name. Nothing on another file system belongs to a name.
func (d dir) folders() (steps []string, err error) {
	names, err := d.list()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "@") || backend.CheckName(name) != nil {
			continue
		}
		is, err := d.stat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && is.Mode&unix.S_IFMT == unix.S_IFDIR && is.Dev == d.top.dev {
			steps = append(steps, name)
		}
	}
	return steps, nil
}
