package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// A folder is the top folder as one session has it. The session opens it when it first finds it, and
// from then on means that folder, and not what is at the path later: see [folder.moved].
type folder struct {
	path    string
	own     bool // the default folder, which must belong to the user alone
	past    *past
	cleaner cleaner
	glance  glances

	mu     sync.Mutex
	top    atomic.Pointer[top] // nil until the folder was found
	closed bool
	gates  map[string]*gate // by name: the gates that a hold passes or waits at

	opening sync.Mutex // held by the goroutine that opens @lock to write
	// These two are used behind the gate of the counters.
	counter counter // the counter that was last locked
	drawn   bool    // a number was drawn
}

// past is what a backend knows from the folders that its sessions have had.
type past struct {
	seen  atomic.Uint64          // the largest number that is known to be taken
	owner atomic.Pointer[uint32] // the owner of the first of them
}

// A top is an open top folder. Its rights are those of everything below.
type top struct {
	file     *os.File // locked, so that nobody cleans the folder up
	raw      syscall.RawConn
	path     string
	dev, ino uint64
	perm     uint32 // with the set-group-ID bit
	uid, gid uint32
}

func newFolder(path string, own bool, before *past) *folder {
	return &folder{path: path, own: own, past: before, gates: make(map[string]*gate)}
}

// opened returns the open folder, and opens it first if it was not found before. It fails with
// [fs.ErrNotExist] if there is none.
func (f *folder) opened() (*top, error) {
	if t := f.top.Load(); t != nil {
		return t, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.top.Load(); t != nil {
		return t, nil
	}
	if f.closed {
		return nil, os.ErrClosed
	}
	t, err := f.open()
	if err == nil {
		f.top.Store(t)
	}
	return t, err
}

// open opens the folder, and checks that it can be trusted.
func (f *folder) open() (*top, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	if f.own {
		flags |= unix.O_NOFOLLOW // a stranger may have put a link there
	}
	fd, err := unix.Open(f.path, flags, 0)
	switch err {
	case nil:
	case unix.ENOTDIR, unix.ELOOP:
		return nil, fmt.Errorf("%w folder %s: it is not a folder", backend.ErrInvalid, f.path)
	default:
		return nil, &fs.PathError{Op: "open", Path: f.path, Err: err}
	}
	t := &top{file: os.NewFile(uintptr(fd), f.path), path: f.path}
	if err := f.check(t, fd); err != nil {
		t.file.Close()
		return nil, err
	}
	// systemd-tmpfiles cleans up where the default folder lies, and spares a folder that is locked
	// (tmpfiles.d(5)). If it cannot be locked, everything else works.
	_ = lockNow(fd, unix.LOCK_SH)
	return t, nil
}

// check checks that the folder can be trusted, and notes its rights.
func (f *folder) check(t *top, fd int) (err error) {
	if t.raw, err = t.file.SyscallConn(); err != nil {
		return err
	}
	var is unix.Stat_t
	if err := unix.Fstat(fd, &is); err != nil {
		return &fs.PathError{Op: "stat", Path: f.path, Err: err}
	}
	t.dev, t.ino, t.perm, t.uid, t.gid = is.Dev, is.Ino, is.Mode&(0o777|unix.S_ISGID), is.Uid, is.Gid
	me := uint32(os.Geteuid())
	refuse := func(why string) error {
		return fmt.Errorf("%w: %s %s", backend.ErrDenied, f.path, why)
	}
	switch {
	case is.Nlink == 0:
		return fmt.Errorf("%w folder %s: it %s", backend.ErrInvalid, f.path, removedBelow)
	case t.perm&0o002 != 0:
		return refuse("is open to everybody's writing; use a folder of your own, or chmod o-w it")
	case f.own && t.uid != me:
		return refuse("belongs to another user; name another folder, as in local:/var/lib/app")
	case f.own && t.perm&0o022 != 0:
		return refuse("is open to the writing of others; chmod go-w it, or name another folder, as in local:/var/lib/app")
	}
	if err := f.checkLinks(f.path, fd, t.uid); err != nil {
		return err
	}
	// A process that has trusted the folder's owner does not trust another user who later makes a
	// folder at the same path.
	f.past.owner.CompareAndSwap(nil, &t.uid)
	if before := *f.past.owner.Load(); t.uid != before && t.uid != me && t.uid != 0 {
		return refuse(fmt.Sprintf("was taken away, and the one that is there now belongs to user %d, and not to user %d as before; start anew if that is as it should be",
			t.uid, before))
	}
	var on unix.Statfs_t
	if err := unix.Fstatfs(fd, &on); err != nil {
		return &fs.PathError{Op: "statfs", Path: f.path, Err: err}
	}
	if kind := uint32(on.Type); !slices.Contains(localFS, kind) {
		name := cmp.Or(sharedFS[kind], fmt.Sprintf("a file system of the unknown kind %#x", kind))
		return fmt.Errorf("%w folder %s: it is on %s, which other machines may share; locks may not reach from machine to machine. Use a disk of this machine, or a coordinator",
			backend.ErrInvalid, f.path, name)
	}
	return nil
}

// checkLinks fails if a link on the path belongs to another user, who may want to lead this process
// to a folder of root, or of this user. A link of the folder's own owner does no harm. fd is the
// folder that was opened. If the path leads elsewhere by now, somebody is exchanging links, and
// checkLinks fails.
func (f *folder) checkLinks(path string, fd int, owner uint32) error {
	rest, at := path, "/"
	for range unix.PathMax { // links may lead in a circle by now
		rest = strings.TrimLeft(rest, "/")
		if rest == "" {
			break
		}
		step, more, _ := strings.Cut(rest, "/")
		rest = more
		next := filepath.Join(at, step)
		var is unix.Stat_t
		if err := unix.Lstat(next, &is); err != nil {
			return &fs.PathError{Op: "stat", Path: next, Err: err}
		}
		if is.Mode&unix.S_IFMT != unix.S_IFLNK {
			at = next
			continue
		}
		if is.Uid != 0 && is.Uid != uint32(os.Geteuid()) && is.Uid != owner {
			return fmt.Errorf("%w: %s is reached by %s, a link of user %d to a folder that is not theirs; name the folder itself", backend.ErrDenied, f.path, next, is.Uid)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if rest = to + "/" + rest; filepath.IsAbs(to) {
			at = "/"
		}
	}
	var found, open unix.Stat_t
	err := errors.Join(unix.Lstat(at, &found), unix.Fstat(fd, &open))
	if err != nil || rest != "" || found.Dev != open.Dev || found.Ino != open.Ino {
		return errors.Join(fmt.Errorf("%w: somebody is replacing folder %s, or what leads to it", backend.ErrDenied, path), err)
	}
	return nil
}

// makeTop makes the folder, unless it is there, for this user alone, and opens it. It starts at a folder that it has opened and checked, and
// follows no link below: another user may put one there meanwhile.
func (f *folder) makeTop() error {
	at, above, err := f.above()
	if err != nil {
		return err
	}
	steps := strings.Split(strings.Trim(strings.TrimPrefix(f.path, above), "/"), "/")
	for _, step := range steps {
		next, err := makeStep(at, above, step)
		unix.Close(at)
		if err != nil {
			return err
		}
		at, above = next, filepath.Join(above, step)
	}
	unix.Close(at)
	_, err = f.opened()
	return err
}

// above opens the lowest existing folder on the way to the folder. It fails if a link of another
// user leads there.
func (f *folder) above() (fd int, path string, err error) {
	for path = filepath.Dir(f.path); ; path = filepath.Dir(path) {
		fd, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT && path != filepath.Dir(path) {
			continue
		}
		if err != nil {
			return fd, path, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		if err = f.checkLinks(path, fd, uint32(os.Geteuid())); err != nil { // whose folder it will be
			unix.Close(fd)
		}
		return fd, path, err
	}
}

// mkdirat is replaced by tests: nothing else shows when it was called.
var mkdirat = unix.Mkdirat

// makeStep makes the folder step of at, which is at path, unless it is there, and opens it.
func makeStep(at int, path, step string) (fd int, err error) {
	if err = mkdirat(at, step, 0o700); err != nil && err != unix.EEXIST {
		return fd, &fs.PathError{Op: "mkdir", Path: filepath.Join(path, step), Err: err}
	}
	fd, err = unix.Openat(at, step, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch err {
	case nil:
	case unix.ENOTDIR, unix.ELOOP:
		return fd, fmt.Errorf("%w folder %s: it is a link, or not a folder", backend.ErrInvalid, filepath.Join(path, step))
	default:
		return fd, &fs.PathError{Op: "mkdir", Path: filepath.Join(path, step), Err: err}
	}
	return fd, nil
}

// removedBelow is what has happened to a folder that is at its path and has no name any more.
const removedBelow = "was removed where it is mounted from; if this is a container, start it anew"

// moved returns nil as long as the path leads to the folder that is open. Otherwise the folder was moved
// or removed, or something was mounted over it or above: others do not find the members that stand in it,
// and may lead in another folder at the same path. It needs no descriptor. If the path cannot be
// followed for another reason, that proves nothing.
func (f *folder) moved() error {
	t := f.top.Load()
	if t == nil {
		return nil
	}
	why := func(what string) error {
		return fmt.Errorf("folder %s was moved, removed or covered by a mount: %s", f.path, what)
	}
	var present, open unix.Stat_t
	switch err := unix.Stat(f.path, &present); err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR:
		return why("nothing is there")
	default:
		return nil
	}
	if present.Dev == t.dev && present.Ino == t.ino {
		if present.Nlink == 0 {
			return why("it " + removedBelow)
		}
		return nil
	}
	// On overlayfs the number of a folder that is open may change.
	if err := t.do(func(d dir) error { return unix.Fstat(d.fd, &open) }); err != nil {
		return nil
	}
	if present.Dev != open.Dev || present.Ino != open.Ino {
		return why("another folder is there")
	}
	return nil
}

// close closes the folder. Calls under way may fail with [os.ErrClosed].
func (f *folder) close() error {
	f.glance.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if t := f.top.Swap(nil); t != nil {
		return t.file.Close()
	}
	return nil
}

// localFS are the file systems that only one machine can use at a time, by their magic number
// (statfs(2), include/uapi/linux/magic.h, and the sources of those that are not in Linux). A
// file system that is not listed is refused: two machines that share it could have two
// leaders. A file system on top of another one, such as eCryptfs, is not listed either: the one below may be shared. An overlay is, because
// it writes to its upper layer, which is local.
var localFS = []uint32{
	unix.EXT4_SUPER_MAGIC, // and ext2, ext3
	unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC,
	unix.REISERFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC,
	unix.JFFS2_SUPER_MAGIC,
	0x24051905, // UBIFS
	0x2fc12fc1, // ZFS
	0x3153464a, // JFS
	0xca451a4e, // bcachefs
}

// sharedFS are the names of file systems that several machines may mount at a time.
var sharedFS = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
	unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda", unix.CEPH_SUPER_MAGIC: "Ceph",
	unix.FUSE_SUPER_MAGIC: "FUSE", unix.OCFS2_SUPER_MAGIC: "OCFS2", unix.V9FS_MAGIC: "9P",
	0x01161970: "GFS2", 0x0bd00bd0: "Lustre", 0x19830326: "BeeGFS", 0x20030528: "OrangeFS", 0x47504653: "GPFS",
}

// at returns the path of a file. Paths are for messages and for inotify; files are opened by [folder.dir].
func (f *folder) at(name, file string) string {
	return filepath.Join(f.path, filepath.FromSlash(name), file)
}

func (f *folder) lock() string          { return f.at("", lockName) }
func (f *folder) of(name string) string { return f.at(name, "") }
func (f *folder) fifo(line string, position uint64) string {
	return f.at(line, fifoName(position))
}

const (
	lockName    = "@lock"
	counterName = "@counter"
	nextName    = "@next"
	fifoPrefix  = "@n_"
)

// fifoName returns the name of the FIFO of the member at a position.
func fifoName(position uint64) string { return "@" + key(position) }
