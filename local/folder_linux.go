package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// A folder is the top folder of a backend: where everything lies, and how it is
// written.
type folder struct {
	path string
	perm fs.FileMode // of the top folder, with its set-group-ID bit; what is below follows it
	own  bool        // the default folder, which must be the user's own
}

// DefaultDir returns the folder that Open takes when the URL names none:
// /var/tmp/succession-UID. It does not depend on the environment, so that a user's
// shells, services and cron jobs meet in one folder, and it outlives a reboot.
func DefaultDir() string { return "/var/tmp/succession-" + strconv.Itoa(os.Geteuid()) }

// prepare makes the folder, unless it is there, and checks that it can be trusted.
// It returns the folder's rights.
func (f *folder) prepare() (fs.FileMode, error) {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return 0, err
	}
	stat := os.Stat
	if f.own {
		stat = os.Lstat // a stranger may have put a link there
	}
	fi, err := stat(f.path)
	if err != nil {
		return 0, err
	}
	refuse := func(why string) (fs.FileMode, error) {
		return 0, fmt.Errorf("%w: %s %s", backend.ErrDenied, f.path, why)
	}
	switch {
	case !fi.IsDir():
		return 0, fmt.Errorf("%w folder %s: it is not a folder", backend.ErrInvalid, f.path)
	case fi.Mode().Perm()&0o002 != 0:
		return refuse("is open to everybody's writing; use a folder of your own, or chmod o-w it")
	case f.own && fi.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()):
		return refuse("belongs to another user; name another folder, as in local:/var/lib/app")
	case f.own && fi.Mode().Perm()&0o022 != 0:
		return refuse("is open to the writing of others; chmod go-w it, or name another folder, as in local:/var/lib/app")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(f.path, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: f.path, Err: err}
	}
	if name, shared := sharedFS[uint32(st.Type)]; shared {
		return 0, fmt.Errorf("%w folder %s: it is on %s, which other machines may share; its locks do not reach from machine to machine. Use a local disk, or a coordinator",
			backend.ErrInvalid, f.path, name)
	}
	return fi.Mode() & (fs.ModePerm | fs.ModeSetgid), nil
}

// sharedFS are the file systems that several machines may mount, by their magic
// number (statfs(2), include/uapi/linux/magic.h).
var sharedFS = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC:  "CIFS",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.FUSE_SUPER_MAGIC:  "FUSE",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	unix.V9FS_MAGIC:        "9P",
	0x01161970:             "GFS2",
	0x0bd00bd0:             "Lustre",
}

func (f *folder) lock() string             { return filepath.Join(f.path, "@lock") }
func (f *folder) counter() string          { return filepath.Join(f.path, "@counter") }
func (f *folder) of(name string) string    { return filepath.Join(f.path, filepath.FromSlash(name)) }
func (f *folder) state(name string) string { return filepath.Join(f.of(name), stateName) }
func (f *folder) fifo(line string, position uint64) string {
	return filepath.Join(f.of(line), fifoPrefix+key(position)[len("n_"):])
}

const (
	stateName  = "@state"
	fifoPrefix = "@n_"
)

// mkdir makes the folder of a name, and lasting: each folder that is new is
// written to its parent on disk.
func (f *folder) mkdir(dir string) error {
	if dir == f.path {
		_, err := f.prepare()
		return err
	}
	err := os.Mkdir(dir, f.perm)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.mkdir(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, f.perm)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	if err := os.Chmod(dir, f.perm); err != nil { // what the umask took away, and the group for what is below
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// replace makes data the contents of path, at once and lasting. tmp must be the
// caller's alone, which the lock of the name sees to. When it fails, path is as it
// was, or, with [backend.ErrUnavailable], may have been replaced.
func (f *folder) replace(tmp, path string, data []byte) error {
	err := f.writeFile(tmp, data)
	if err == nil {
		err = f.rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: %s was written, but may not outlast a power failure: %w", backend.ErrUnavailable, path, err)
	}
	return nil
}

// rename renames tmp to path and makes the folder for it. Others remove folders
// that have become empty, perhaps this one, perhaps just now.
func (f *folder) rename(tmp, path string) error {
	var err error
	for range 100 {
		if err = f.mkdir(filepath.Dir(path)); err == nil {
			err = os.Rename(tmp, path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

// openLock opens the lock file, and makes it where there is none.
func (f *folder) openLock() (*os.File, error) {
	file, err := os.OpenFile(f.lock(), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, f.perm&0o666)
	if err != nil {
		return nil, err
	}
	fi, err := file.Stat()
	if err == nil && fi.Mode().Perm() != f.perm&0o666 {
		_ = file.Chmod(f.perm & 0o666) // what the umask took away; only its maker can
	}
	return file, nil
}

// writeFile writes data to path and to the disk.
func (f *folder) writeFile(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, f.perm&0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Chmod(f.perm&0o666), file.Sync(), file.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// tmp returns the name under which a file is written before it is renamed: the
// one of its byte in @lock, which is locked meanwhile.
func (f *folder) tmp(lockByte int64) string {
	return filepath.Join(f.path, fmt.Sprintf("@tmp-%016x", lockByte))
}

// tidy removes the folder of a name, and those above it, as far as they are empty.
func (f *folder) tidy(name string) {
	for dir := f.of(name); dir != f.path && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
}
