package local

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What is synced, and what need not be, is in the package comment.

// fsync is replaced by tests: nothing else shows that it was called, and when. Everything that is synced goes
// through it.
var fsync = unix.Fsync

func syncFD(fd int) (err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		err = fsync(fd)
	}
	return err
}

// sync puts on disk which files are in d.
func (d dir) sync() error {
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return d.fail("open", "", err)
	}
	defer unix.Close(fd)
	if err := syncFD(fd); err != nil {
		return d.fail("sync", "", err)
	}
	return nil
}

// syncPath puts on disk that the folder of a name is in the one above, and so on up to the top folder. For the
// top folder, "", it goes on up to the root of the file system.
//
// It is called before the first synced file of a folder is moved there, and not after: so if that file is there,
// the path to it is on disk, also if the process that made it was killed right afterwards.
func (f *folder) syncPath(name string) error {
	if name == "" {
		return f.do(dir.syncAbove)
	}
	for name != "" {
		name, _ = split(name)
		d, err := f.dir(name)
		if err != nil {
			return err
		}
		err = d.sync()
		d.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// syncAbove is syncPath for the top folder.
func (d dir) syncAbove() error {
	var is, above unix.Stat_t
	if err := unix.Fstat(d.fd, &is); err != nil {
		return d.fail("stat", "", err)
	}
	for up := ".."; ; up = filepath.Join(up, "..") {
		at, err := unix.Openat(d.fd, up, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == unix.EACCES { // its owner lets nobody go there
			return nil
		}
		if err == nil {
			if err = unix.Fstat(at, &above); err == nil && above.Dev == is.Dev && above.Ino != is.Ino {
				err = syncAt(at)
			}
			unix.Close(at)
		}
		if err != nil {
			return d.fail("sync", up, err)
		}
		if above.Dev != is.Dev || above.Ino == is.Ino { // another file system, or the root
			return nil
		}
		is = above
	}
}

// syncAt syncs the folder at, unless this user may not read it.
func syncAt(at int) error {
	fd, err := unix.Openat(at, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.EACCES { // its owner lets others make folders there, but not read it
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return syncFD(fd)
}
