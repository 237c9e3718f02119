package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// A folder is the top folder of a backend: it knows where everything lies, and how it is
// written. The first who writes makes it; whoever only looks does not.
type folder struct {
	path   string
	own    bool                   // the default folder, which must belong to the user alone
	rights atomic.Pointer[rights] // nil until prepare has found the folder

	mu     sync.Mutex
	locked *os.File // the folder, locked so that nobody cleans it up
	closed bool
}

// rights are those of the top folder. Everything below gets the same.
type rights struct {
	perm     fs.FileMode // with the set-group-ID bit
	uid, gid int
}

// DefaultDir returns the folder that Open takes if the URL names none:
// /var/tmp/succession-UID. It does not depend on the environment, so that a user's shells,
// services and cron jobs use the same folder, and it outlives a reboot.
func DefaultDir() string { return "/var/tmp/succession-" + strconv.Itoa(os.Geteuid()) }

// make makes the folder, unless it is there, and prepares it.
func (f *folder) make() error {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return err
	}
	return f.prepare()
}

// prepare checks that the folder can be trusted, and notes its rights.
func (f *folder) prepare() error {
	stat := os.Stat
	if f.own {
		stat = os.Lstat // a stranger may have put a link there
	}
	fi, err := stat(f.path)
	if err != nil {
		return err
	}
	owner := fi.Sys().(*syscall.Stat_t)
	refuse := func(why string) error {
		return fmt.Errorf("%w: %s %s", backend.ErrDenied, f.path, why)
	}
	switch {
	case !fi.IsDir():
		return fmt.Errorf("%w folder %s: it is not a folder", backend.ErrInvalid, f.path)
	case fi.Mode().Perm()&0o002 != 0:
		return refuse("is open to everybody's writing; use a folder of your own, or chmod o-w it")
	case f.own && owner.Uid != uint32(os.Geteuid()):
		return refuse("belongs to another user; name another folder, as in local:/var/lib/app")
	case f.own && fi.Mode().Perm()&0o022 != 0:
		return refuse("is open to the writing of others; chmod go-w it, or name another folder, as in local:/var/lib/app")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(f.path, &st); err != nil {
		return &fs.PathError{Op: "statfs", Path: f.path, Err: err}
	}
	if kind := uint32(st.Type); !slices.Contains(localFS, kind) {
		name := cmp.Or(sharedFS[kind], fmt.Sprintf("a file system of the unknown kind %#x", kind))
		return fmt.Errorf("%w folder %s: it is on %s, which other machines may share; locks may not reach from machine to machine. Use a disk of this machine, or a coordinator",
			backend.ErrInvalid, f.path, name)
	}
	f.rights.Store(&rights{fi.Mode() & (fs.ModePerm | fs.ModeSetgid), int(owner.Uid), int(owner.Gid)})
	return f.keep()
}

// keep locks the folder, because systemd-tmpfiles cleans up where the default folder lies,
// and spares a folder that is locked (tmpfiles.d(5)). If it cannot be locked, everything else
// works.
func (f *folder) keep() error {
	dir, err := os.Open(f.path)
	if err != nil {
		return err
	}
	_ = flock(dir, syscall.LOCK_SH)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return dir.Close()
	}
	if f.locked != nil {
		f.locked.Close()
	}
	f.locked = dir
	return nil
}

// close unlocks the folder.
func (f *folder) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	again := f.closed
	f.closed = true
	if again || f.locked == nil {
		return nil
	}
	return f.locked.Close()
}

// give gives a new file the rights of the folder, some of which the umask took away. If root
// has made the file, give also gives it to the folder's owner, who could not use it
// otherwise.
func (f *folder) give(fd int, perm fs.FileMode) error {
	r := f.rights.Load()
	if uid := os.Geteuid(); uid == 0 && r.uid != uid {
		_ = unix.Fchown(fd, r.uid, r.gid) // not every root may do that
	}
	mode := uint32(perm.Perm())
	if perm&fs.ModeSetgid != 0 {
		mode |= unix.S_ISGID
	}
	return unix.Fchmod(fd, mode)
}

// filePerm are the rights of a file.
func (f *folder) filePerm() fs.FileMode { return f.rights.Load().perm & 0o666 }

// localFS are the file systems that only one machine can use at a time, by their magic number
// (statfs(2), include/uapi/linux/magic.h, and the sources of those that are not in Linux). A
// file system that is not listed is refused: two machines that share it could have two
// leaders.
var localFS = []uint32{
	unix.EXT4_SUPER_MAGIC, // and ext2, ext3
	unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC,
	unix.REISERFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
	unix.ECRYPTFS_SUPER_MAGIC, unix.JFFS2_SUPER_MAGIC,
	0x24051905, // UBIFS
	0x2fc12fc1, // ZFS
	0x3153464a, // JFS
	0x61756673, // aufs
	0xca451a4e, // bcachefs
}

// sharedFS are the names of file systems that several machines may mount at a time.
var sharedFS = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
	unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda", unix.CEPH_SUPER_MAGIC: "Ceph",
	unix.FUSE_SUPER_MAGIC: "FUSE", unix.OCFS2_SUPER_MAGIC: "OCFS2", unix.V9FS_MAGIC: "9P",
	0x01161970: "GFS2", 0x0bd00bd0: "Lustre", 0x19830326: "BeeGFS", 0x20030528: "OrangeFS", 0x47504653: "GPFS",
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

// mkdir makes the folder of a name, and those above it. Each folder that is new is on disk
// when mkdir returns.
func (f *folder) mkdir(dir string) error {
	if dir == f.path {
		return f.make()
	}
	perm := f.rights.Load().perm
	err := os.Mkdir(dir, perm)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.mkdir(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, perm)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	made, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.give(int(made.Fd()), perm), made.Close()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// replace makes data the contents of path in one step, and puts it on disk. Nobody else may
// use tmp meanwhile; the lock of the name sees to that. If replace fails, path is as it was.
// If it fails with [backend.ErrUnavailable], path may have been replaced.
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

// rename renames tmp to path and makes the folder for it. It tries several times, because
// others may just have removed that folder while it was empty.
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

// openLock opens the lock file, and makes it if there is none. It fails with
// [fs.ErrNotExist] if there is no folder.
func (f *folder) openLock() (*os.File, error) {
	if f.rights.Load() == nil {
		return nil, fs.ErrNotExist
	}
	perm := f.filePerm()
	const flags = unix.O_RDWR | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open(f.lock(), flags, 0)
	if err == unix.ENOENT { // O_CREAT waits for those who write to the folder
		fd, err = unix.Open(f.lock(), flags|unix.O_CREAT, uint32(perm))
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: f.lock(), Err: err}
	}
	file := os.NewFile(uintptr(fd), f.lock())
	fi, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	if owner := fi.Sys().(*syscall.Stat_t); fi.Mode().Perm() != perm || int(owner.Uid) != f.rights.Load().uid {
		_ = f.give(fd, perm) // only the file's owner and root can
	}
	return file, nil
}

// writeFile writes data to a new file at path, and to the disk.
func (f *folder) writeFile(path string, data []byte) error {
	// A process that was killed may have left a file there. If it was another user's, its
	// rights could not be changed.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, f.filePerm())
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, f.give(int(file.Fd()), f.filePerm()), file.Sync(), file.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// tmp returns the path at which a file is written before it is renamed. It is named after
// the byte of @lock that is locked meanwhile.
func (f *folder) tmp(lockByte int64) string {
	return filepath.Join(f.path, fmt.Sprintf("@tmp-%016x", lockByte))
}

// tidy removes the folder of a name, and those above it, if they are empty.
func (f *folder) tidy(name string) {
	for dir := f.of(name); dir != f.path && os.Remove(dir) == nil; {
		dir = filepath.Dir(dir)
	}
}
