package local

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// A new file or folder gets the rights of the top folder. It first stands in the top folder under
// another name, and is moved to its place when it has them. So a process that is killed leaves
// nothing that others cannot use.

// filePerm are the rights of a file. Users who may not write to the folder get none: a user who may
// open a file may lock it, and so keep others from joining, or make a dead member look alive.
func (t *top) filePerm() uint32 {
	if t.perm&0o020 != 0 {
		return 0o660
	}
	return 0o600
}

// dirPerm are the rights of a folder.
func (t *top) dirPerm() uint32 { return t.perm &^ 0o007 }

// give sets the rights of a file or folder that this process has made: the umask has taken some
// away. If this process runs as root, give also makes the owner of the top folder its owner,
// because otherwise that user could not use it.
func (t *top) give(fd int, perm uint32) error {
	if t.gives() {
		_ = unix.Fchown(fd, int(t.uid), int(t.gid)) // root may lack this right, as in a container
	}
	return unix.Fchmod(fd, perm)
}

// gives reports whether files that this process makes must belong to another user.
func (t *top) gives() bool { return os.Geteuid() == 0 && t.uid != 0 }

// giveMade is give for a file or folder that was opened after it was made. A user who may write to
// the folder may have put something else there meanwhile. So it must be of the kind and have no
// other name. If it is to belong to another user, it must now belong to root, and a folder must be
// empty, which its new owner could also make. If it was removed meanwhile, giveMade fails with [fs.ErrNotExist].
func (d dir) giveMade(fd int, file string, kind, perm uint32) error {
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return d.fail("stat", file, err)
	}
	if is.Nlink == 0 { // an operator has deleted it
		return d.fail("stat", file, unix.ENOENT)
	}
	ours := is.Mode&unix.S_IFMT == kind && (kind == unix.S_IFDIR || is.Nlink == 1)
	if ours && d.top.gives() {
		ours = is.Uid == 0
		if ours && kind == unix.S_IFDIR {
			names, err := dir{fd, d.top, path.Join(d.at, file)}.list()
			if err != nil {
				return err
			}
			ours = len(names) == 0
		}
	}
	if !ours {
		return fmt.Errorf("%w: somebody has replaced %s while it was made", backend.ErrDenied, d.path(file))
	}
	if !d.top.gives() && is.Mode&0o7777 == perm {
		return nil
	}
	if err := d.top.give(fd, perm); err != nil {
		return d.fail("chmod", file, err)
	}
	return nil
}

// tmp returns the name under which a file stands before it is moved, and fresh that of a folder. They are
// named after the byte of @lock that is locked meanwhile.
func tmp(lockByte int64) string   { return fmt.Sprintf("@tmp-%016x", lockByte) }
func fresh(lockByte int64) string { return fmt.Sprintf("@new-%016x", lockByte) }

// make opens the folder of a name, or the top folder for "", and makes it if there is none, and those
// above it. It syncs nothing; see [folder.syncPath]. The caller holds the lock of lockByte, and closes the
// folder.
func (f *folder) make(name string, lockByte int64) (dir, error) {
	for range 100 { // others may remove a folder that is empty
		d, err := f.dir(name)
		if name == "" || !errors.Is(err, fs.ErrNotExist) {
			return d, err
		}
		above, step := path.Split(name)
		parent, err := f.make(path.Clean("/" + above)[1:], lockByte)
		if err != nil {
			return d, err
		}
		err = parent.make(step, fresh(lockByte))
		parent.close()
		if err == nil {
			f.cleaner.made.Add(1)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return d, err
		}
	}
	return dir{}, &fs.PathError{Op: "mkdir", Path: f.of(name), Err: unix.ENOENT}
}

// make makes the folder step of d, which at first has the name fresh. It is not an error if there is one.
func (d dir) make(step, fresh string) error {
	return d.top.do(func(top dir) error {
		err := unix.Mkdirat(top.fd, fresh, 0o700)
		if err == unix.EEXIST { // a process was killed here
			_ = unix.Unlinkat(top.fd, fresh, unix.AT_REMOVEDIR)
			err = unix.Mkdirat(top.fd, fresh, 0o700)
		}
		if err != nil {
			return d.fail("mkdir", step, err)
		}
		err = func() error {
			fd, err := unix.Openat(top.fd, fresh, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if err != nil {
				return top.fail("open", fresh, err)
			}
			defer unix.Close(fd)
			return top.giveMade(fd, fresh, unix.S_IFDIR, d.top.dirPerm())
		}()
		if err == nil {
			if err = move(top.fd, fresh, d.fd, step); err == nil {
				return nil
			}
			err = d.fail("mkdir", step, err)
		}
		_ = unix.Unlinkat(top.fd, fresh, unix.AT_REMOVEDIR)
		if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
			return nil
		}
		return err
	})
}

// renameat2 is replaced by a test.
var renameat2 = unix.Renameat2

// move renames a folder, and fails with EEXIST if there is one of the new name. Not every file system can do
// that: there it may replace a folder that is empty, whose maker then makes it again. That would be
// wrong for a file, which others may have opened; see openLock.
func move(from int, old string, to int, name string) error {
	err := renameat2(from, old, to, name, unix.RENAME_NOREPLACE)
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	var is unix.Stat_t
	if unix.Fstatat(to, name, &is, unix.AT_SYMLINK_NOFOLLOW) == nil {
		return unix.EEXIST
	}
	return unix.Renameat(from, old, to, name)
}

// replace makes data the contents of a file of a name in one step. If keep is true, it puts that on disk. The
// caller holds the lock of lockByte. If replace fails, the file is as it was. If it fails with
// [backend.ErrUnavailable], the file may have been replaced.
func (f *folder) replace(name, file string, lockByte int64, data []byte, keep bool) error {
	if err := checkSize(len(data), f.at(name, file)); err != nil {
		return err
	}
	return f.do(func(top dir) error {
		tmp := tmp(lockByte)
		err := top.write(tmp, data, keep)
		for range 100 { // as in make
			if err != nil {
				break
			}
			var d dir
			if d, err = f.make(name, lockByte); err != nil {
				break
			}
			moved, failed := f.place(top, tmp, d, file, keep)
			d.close()
			if moved || failed != unix.ENOENT {
				if !moved {
					_ = top.remove(tmp)
				}
				return failed
			}
		}
		_ = top.remove(tmp)
		if err == nil {
			err = &fs.PathError{Op: "rename", Path: f.at(name, file), Err: unix.ENOENT}
		}
		return err
	})
}

// checkSize refuses a file that nobody would read.
func checkSize(size int, path string) error {
	if size > maxFile {
		return fmt.Errorf("%w: %s would have %d bytes, and at most %d are possible", backend.ErrUnavailable, path, size, maxFile)
	}
	return nil
}

// place moves the file tmp of the top folder to its place in d. moved says that it is there. If d has been removed,
// place fails with ENOENT.
func (f *folder) place(top dir, tmp string, d dir, file string, keep bool) (moved bool, err error) {
	if !keep {
		err := swap(top, tmp, d, file)
		return err == nil, err
	}
	if _, err := d.stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := f.syncPath(d.at); errors.Is(err, fs.ErrNotExist) {
			return false, unix.ENOENT
		} else if err != nil {
			return false, err
		}
	}
	if err := unix.Renameat(top.fd, tmp, d.fd, file); err == unix.ENOENT {
		return false, err
	} else if err != nil {
		return false, d.fail("rename", file, err)
	}
	if err := d.sync(); err != nil {
		return true, fmt.Errorf("%w: %s was written, but may not outlast a power failure: %w", backend.ErrUnavailable, d.path(file), err)
	}
	return true, nil
}

// swap moves the file tmp of the top folder to its place in d, and removes the one that is there. It exchanges
// the two if it can: when ext4 puts one file in the place of another, it first writes the new one to the disk
// (auto_da_alloc, ext4(5)), which takes longer than all else in a join.
func swap(top dir, tmp string, d dir, file string) error {
	err := renameat2(top.fd, tmp, d.fd, file, unix.RENAME_EXCHANGE)
	if err == nil {
		_ = top.remove(tmp) // if it stays, the next one who writes to the name removes it
		return nil
	}
	if err = unix.Renameat(top.fd, tmp, d.fd, file); err != nil && err != unix.ENOENT {
		err = d.fail("rename", file, err)
	}
	return err
}

// write writes data to a new file, and syncs that if keep is true.
func (d dir) write(name string, data []byte, keep bool) error {
	fd, err := d.create(name)
	if errors.Is(err, fs.ErrExist) {
		// A process that was killed has left a file there. If it is another user's, its rights could not be changed.
		if err = d.remove(name); err == nil {
			fd, err = d.create(name)
		}
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil && err != unix.EINTR {
			return d.fail("write", name, err)
		}
		data = data[max(n, 0):]
	}
	if keep {
		if err := syncFD(fd); err != nil {
			return d.fail("sync", name, err)
		}
	}
	return nil
}

// create makes a file that is not there yet.
func (d dir) create(name string) (fd int, err error) {
	fd, err = unix.Openat(d.fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fd, d.fail("create", name, err)
	}
	if err := d.top.give(fd, d.top.filePerm()); err != nil {
		unix.Close(fd)
		return fd, d.fail("chmod", name, err)
	}
	return fd, nil
}

// openLock opens the lock file with the flags O_RDONLY or O_RDWR, and makes it if there is none.
func (d dir) openLock(flags int) (int, error) {
	fd, is, err := d.open(lockName, flags, unix.S_IFREG)
	if errors.Is(err, fs.ErrNotExist) {
		// No lock is held here, so no other process may use the same name.
		other := fmt.Sprintf("@tmp-lock-%016x", rand.Uint64())
		made, failed := d.create(other)
		if failed != nil {
			return made, failed
		}
		failed = unix.Linkat(d.fd, other, d.fd, lockName, 0) // it fails if there is one, on every file system
		_ = d.remove(other)
		if failed == nil {
			return made, nil
		}
		unix.Close(made)
		if failed != unix.EEXIST {
			return made, d.fail("create", lockName, failed)
		}
		fd, is, err = d.open(lockName, flags, unix.S_IFREG)
	}
	if err != nil {
		return fd, err
	}
	if perm := d.top.filePerm(); is.Mode&0o777 != perm && is.Uid == d.top.uid && is.Nlink == 1 {
		_ = unix.Fchmod(fd, perm) // an earlier version let others open it
	}
	return fd, nil
}

// remove removes the FIFO of a member. It is not an error if there is none.
func (f *folder) remove(line string, position uint64) error {
	d, err := f.dir(line)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.close()
	return d.remove(fifoName(position))
}

// tidy removes the folder of a name, and those above it, if they are empty.
func (f *folder) tidy(name string) {
	for name != "" {
		above, step := path.Split(name)
		name = path.Clean("/" + above)[1:]
		d, err := f.dir(name)
		if err != nil {
			return
		}
		err = unix.Unlinkat(d.fd, step, unix.AT_REMOVEDIR)
		d.close()
		if err != nil {
			return
		}
	}
}
