//go:build linux

package local_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/local"
)

// The users of these tests.
const (
	owner    = 54321
	stranger = 54322
)

// ownedBy makes a folder, and gives it to a user, which only root can.
func ownedBy(t *testing.T, user int, path string, perm fs.FileMode) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, perm), os.Chown(path, user, user)); err != nil {
		t.Fatal(err)
	}
}

// writes calls everything that writes to a name, and fails if anything succeeds or fails otherwise than
// want.
func writes(t *testing.T, s backend.Session, name string, want error) {
	t.Helper()
	_, join := s.Join(t.Context(), name, "", "")
	_, put := s.Put(t.Context(), name, []byte("v"), nil)
	_, item := s.Append(t.Context(), name, "")
	for op, err := range map[string]error{"Join": join, "Put": put, "Append": item} {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", op, err, want)
		}
	}
}

// looks is writes for what only looks.
func looks(t *testing.T, s backend.Session, name string, want error) {
	t.Helper()
	_, line := s.Line(t.Context(), name)
	_, head := s.Head(t.Context(), name)
	_, get := s.Get(t.Context(), name)
	for op, err := range map[string]error{"Line": line, "Head": head, "Get": get} {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", op, err, want)
		}
	}
}

// TestLinkedFolder says that no link below the folder is followed: whoever may write to the folder must not
// have root, or anybody else, write elsewhere.
func TestLinkedFolder(t *testing.T) {
	for _, link := range []string{"app", "app/reports", "app/reports/e"} {
		t.Run(link, func(t *testing.T) {
			elsewhere, dir := t.TempDir(), t.TempDir()
			if os.Geteuid() == 0 { // the attack of the folder's owner on root
				if err := os.Chown(dir, owner, owner); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(elsewhere, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
			_, s := open(t, dir)
			writes(t, s, "app/reports/e", backend.ErrDenied)
			looks(t, s, "app/reports/e", backend.ErrDenied)
			if made, err := os.ReadDir(elsewhere); err != nil || len(made) != 0 {
				t.Errorf("made %v elsewhere, %v", made, err)
			}
			if lines, err := s.Lines(t.Context()); err != nil || len(lines) != 0 {
				t.Errorf("Lines: %v, %v", lines, err)
			}
		})
	}
}

// TestFolderOfTheApplication says that who lists all only passes through a folder of the application's, which no session would use. If an election
// is below it, nobody can use that any more: the error says why.
func TestFolderOfTheApplication(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	join(t, s, "app/e", "")
	if _, err := s.Put(t.Context(), "app/r", nil, nil); err != nil {
		t.Fatal(err)
	}
	uploads := filepath.Join(dir, "app", "uploads")
	if err := errors.Join(os.MkdirAll(filepath.Join(uploads, "2026"), 0o700), os.Chmod(uploads, 0o777|fs.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	if lines, err := s.Lines(t.Context()); err != nil || len(lines) != 1 || lines["app/e"] != 1 {
		t.Errorf("Lines: %v, %v", lines, err)
	}
	if all, err := s.Survey(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("Survey: %v, %v", all, err)
	}
	if names, err := s.List(t.Context(), "app"); err != nil || len(names) != 1 {
		t.Errorf("List: %v, %v", names, err)
	}
	looks(t, s, "app/uploads", backend.ErrDenied)

	if err := os.Chmod(uploads, 0o700); err != nil {
		t.Fatal(err)
	}
	join(t, s, "app/uploads/2026/e", "")
	if err := os.Chmod(uploads, 0o777); err != nil {
		t.Fatal(err)
	}
	_, lines := s.Lines(t.Context())
	_, all := s.Survey(t.Context())
	for op, err := range map[string]error{"Lines": lines, "Survey": all} {
		if !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), uploads+" is open") {
			t.Errorf("%s where one stands below %s: %v, want ErrDenied that names that", op, uploads, err)
		}
	}
}

// TestUnreadableFolder says that nobody is told of all elections who may not look everywhere: others may stand there.
func TestUnreadableFolder(t *testing.T) {
	for _, perm := range []fs.FileMode{0, 0o444} { // the second tells names, and not what they are
		dir := t.TempDir()
		private := filepath.Join(dir, "private")
		if err := errors.Join(os.Chmod(dir, 0o755), os.MkdirAll(filepath.Join(private, "e"), 0o700), os.Chmod(private, perm)); err != nil {
			t.Fatal(err)
		}
		_, s := open(t, dir)
		var err error
		asStranger(t, func() { _, err = s.Lines(t.Context()) })
		if !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), private) {
			t.Errorf("Lines with %v: %v, want ErrDenied, and %s named", perm, err, private)
		}
	}
}

// asStranger calls fn on a thread that has a stranger's rights to files, if root runs the test.
func asStranger(t *testing.T, fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // and for good, so that the thread ends here
			if err := unix.Setfsuid(stranger); err != nil {
				t.Error(err)
			}
		}
		fn()
	}()
	<-done
}

// TestLinkedTop has links on the path of the top folder. A user must not lead root to a folder that is not that
// user's own: root would make files there.
func TestLinkedTop(t *testing.T) {
	for what, c := range map[string]struct {
		link, folder int // whose they are
		want         error
	}{
		"of a user to root's":        {owner, 0, backend.ErrDenied},
		"of a user to another's":     {owner, stranger, backend.ErrDenied},
		"of a user to the user's":    {owner, owner, nil},
		"of root to a user's":        {0, owner, nil},
		"of root to root's, in ../.": {0, 0, nil},
	} {
		for _, last := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, last %t", what, last), func(t *testing.T) {
				top := t.TempDir()
				ownedBy(t, c.folder, filepath.Join(top, "there"), 0o700)
				ownedBy(t, c.folder, filepath.Join(top, "there/app"), 0o700)
				dir, to := filepath.Join(top, "link"), "./../"+filepath.Base(top)+"/there/app"
				if !last {
					dir, to = filepath.Join(dir, "app"), filepath.Join(top, "there")
				}
				if err := errors.Join(os.Symlink(to, filepath.Join(top, "link")), os.Lchown(filepath.Join(top, "link"), c.link, c.link)); err != nil {
					t.Fatal(err)
				}
				put := func(dir string) error {
					b, err := local.New(dir, nil)
					if err != nil {
						return err
					}
					defer b.Close()
					s, err := b.Session(t.Context())
					if err == nil {
						_, err = s.Put(t.Context(), "e", nil, nil)
					}
					return err
				}
				if err := put(dir); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if err := put(filepath.Join(dir, "new/one")); errors.Is(err, backend.ErrDenied) != (c.link != 0) { // it will be root's
					t.Errorf("a folder that is to be made: %v", err)
				}
				if _, err := os.Stat(filepath.Join(top, "there/app/new")); errors.Is(err, fs.ErrNotExist) != (c.link != 0) {
					t.Errorf("a folder that is to be made: %v", err)
				}
				if made, err := os.ReadDir(filepath.Join(top, "there/app")); err != nil || (len(made) == 0) != (c.want != nil) {
					t.Errorf("made %v there, %v", made, err)
				}
			})
		}
	}
}

// TestReplacedAbove has the owner of a folder put a link in its place when root is about to make one below.
func TestReplacedAbove(t *testing.T) {
	for _, below := range []string{"app", "new/app"} {
		t.Run(below, func(t *testing.T) {
			elsewhere, home := t.TempDir(), filepath.Join(t.TempDir(), "home")
			ownedBy(t, owner, home, 0o700)
			ownedBy(t, owner, filepath.Join(home, "x"), 0o700)
			local.BeforeMkdir(t, func() {
				if err := errors.Join(os.Rename(filepath.Join(home, "x"), filepath.Join(home, "y")), os.Symlink(elsewhere, filepath.Join(home, "x")),
					os.Lchown(filepath.Join(home, "x"), owner, owner)); err != nil {
					t.Error(err)
				}
			})
			b, err := local.New(filepath.Join(home, "x", below), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			s, err := b.Session(t.Context())
			if err == nil {
				_, err = s.Put(t.Context(), "e", nil, nil)
			}
			if err == nil {
				t.Error("root uses what is behind the link")
			}
			if made, err := os.ReadDir(elsewhere); err != nil || len(made) != 0 {
				t.Errorf("made %v elsewhere, %v", made, err)
			}
		})
	}
}

// TestLinkedFile says that root gives nobody a file that it has not made, whatever name in the folder leads
// to that file, and writes nothing into it.
func TestLinkedFile(t *testing.T) {
	for _, name := range []string{"@lock", "@counter", "@next", "e/@state", "e/@line", "@tmp", "e/@n_0000000001"} {
		for kind, link := range map[string]func(old, new string) error{"hard": os.Link, "symbolic": os.Symlink} {
			t.Run(kind+" "+name, func(t *testing.T) {
				top := t.TempDir()
				dir := filepath.Join(top, "app")
				ownedBy(t, owner, dir, 0o700)
				if err := errors.Join(os.Mkdir(filepath.Join(dir, "e"), 0o700), os.Chown(filepath.Join(dir, "e"), owner, owner)); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(top, "root's")
				if err := os.WriteFile(file, []byte("root's"), 0o600); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, name)
				if name == "@tmp" {
					path = local.TmpFile(dir, "e")
				}
				if err := link(file, path); err != nil {
					t.Fatal(err)
				}
				b, err := local.New(dir, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				if s, err := b.Session(t.Context()); err == nil {
					_, _ = s.Join(t.Context(), "e", "", "") // some of them fail, and some replace the link
					_, _ = s.Put(t.Context(), "e", []byte("v"), nil)
				}
				data, err := os.ReadFile(file)
				if err != nil || string(data) != "root's" {
					t.Errorf("the file is now %q, %v", data, err)
				}
				fi, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				if st := fi.Sys().(*syscall.Stat_t); st.Uid != 0 || fi.Mode() != 0o600 {
					t.Errorf("the file is now user %d's, with %v", st.Uid, fi.Mode())
				}
			})
		}
	}
}

// TestLinkedFIFO says that nobody reads from another's FIFO whose owner knows nothing of the folder: what is read there is gone.
func TestLinkedFIFO(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "app")
	ownedBy(t, owner, dir, 0o700)
	elsewhere := filepath.Join(top, "root's")
	if err := unix.Mkfifo(elsewhere, 0o600); err != nil {
		t.Fatal(err)
	}
	talk, err := os.OpenFile(elsewhere, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	if _, err := talk.WriteString("root's"); err != nil {
		t.Fatal(err)
	}
	_, s := open(t, dir)
	m, behind := join(t, s, "e", ""), join(t, s, "e", "")
	if err := errors.Join(os.Remove(fifo(dir, m)), os.Link(elsewhere, fifo(dir, m))); err != nil {
		t.Fatal(err)
	}
	_, other := open(t, dir)
	gone := begin(func() error { return other.Gone(t.Context(), m) })
	if err := within(t, "Gone", gone); !errors.Is(err, local.ErrDamaged) {
		t.Errorf("Gone: %v, want ErrDamaged", err)
	}
	if _, err := s.Ahead(t.Context(), behind); !errors.Is(err, local.ErrDamaged) {
		t.Errorf("Ahead: %v, want ErrDamaged", err)
	}
	if err := talk.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	if n, err := talk.Read(data); string(data[:n]) != "root's" {
		t.Errorf("what was in the FIFO is now %q, %v", data[:n], err)
	}
}

// TestTouchesNothingElse says that whoever is told of a change by the times of a FIFO is told by these alone: the owner of the folder may
// give a name there to a file of root's, and its times say something to others.
func TestTouchesNothingElse(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "app")
	old := time.Unix(1, 0)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, touched := range map[string]bool{"own FIFO": true, "FIFO": false, "file": false} {
		file := filepath.Join(top, name)
		if touched {
			file = filepath.Join(dir, name)
		}
		var err error
		if name == "file" {
			err = os.WriteFile(file, nil, 0o600)
		} else {
			err = unix.Mkfifo(file, 0o600)
		}
		if err == nil && !touched {
			err = os.Link(file, filepath.Join(dir, name))
		}
		if err := errors.Join(err, os.Chtimes(file, old, old), local.Touch(dir, name)); err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if fi.ModTime().After(old) != touched {
			t.Errorf("the %s now has the time %v", name, fi.ModTime())
		}
	}
}

// TestReplacedWhileMade says that root gives nobody what a folder's owner has put in the place of what root
// has just made.
func TestReplacedWhileMade(t *testing.T) {
	for name, test := range map[string]struct {
		kind  uint32
		puts  func(path string) error
		given bool
	}{
		"the FIFO that was made":     {unix.S_IFIFO, func(path string) error { return unix.Mkfifo(path, 0o600) }, true},
		"the folder that was made":   {unix.S_IFDIR, func(path string) error { return os.Mkdir(path, 0o700) }, true},
		"a file":                     {unix.S_IFIFO, func(path string) error { return os.WriteFile(path, nil, 0o600) }, false},
		"a folder that is not empty": {unix.S_IFDIR, func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) }, false},
		"a FIFO of two names": {unix.S_IFIFO, func(path string) error {
			return errors.Join(unix.Mkfifo(path+"2", 0o600), os.Link(path+"2", path))
		}, false},
		"another user's FIFO": {unix.S_IFIFO, func(path string) error {
			return errors.Join(unix.Mkfifo(path, 0o600), os.Chown(path, stranger, stranger))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "app")
			ownedBy(t, owner, dir, 0o700)
			path := filepath.Join(dir, "@made")
			if err := test.puts(path); err != nil {
				t.Fatal(err)
			}
			if err := local.GiveMade(dir, "@made", test.kind); test.given != (err == nil) || !test.given && !errors.Is(err, backend.ErrDenied) {
				t.Error(err)
			}
			fi, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := fi.Sys().(*syscall.Stat_t).Uid == owner; got != test.given {
				t.Errorf("it was given away: %t", got)
			}
		})
	}
}

// TestForeignFolder says that no folder below is trusted that belongs to somebody who may not write to the
// top folder.
func TestForeignFolder(t *testing.T) {
	for perm, want := range map[fs.FileMode]error{0o755: backend.ErrDenied, 0o770 | fs.ModeSetgid: nil} {
		dir := filepath.Join(t.TempDir(), "app")
		ownedBy(t, owner, dir, perm)
		below := filepath.Join(dir, "e")
		ownedBy(t, stranger, below, 0o770)
		_, s := open(t, dir)
		writes(t, s, "e", want)
		looks(t, s, "e", want)
	}
}

// TestStrangeFile says that a file that is not of the kind that it should be, or is too large, neither
// stops whoever looks nor takes memory, and is named.
func TestStrangeFile(t *testing.T) {
	kinds := map[string]func(path string) error{
		"FIFO":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"socket": func(path string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
		"file of 15 TB": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 15<<40))
		},
	}
	for kind, make := range kinds {
		for _, name := range []string{"@state", "@line", "@counter", "@next", "@lock", "@n_"} {
			if kind == "FIFO" && name == "@n_" || kind == "file of 15 TB" && name == "@lock" {
				continue // as it should be
			}
			t.Run(name+" is a "+kind, func(t *testing.T) {
				t.Chdir(t.TempDir()) // the path of a socket must be short
				b, s := open(t, "top")
				m, second := join(t, s, "e", ""), join(t, s, "e", "")
				appendItem(t, s, "e", "")
				path := filepath.Join("top", name)
				switch name {
				case "@state", "@line":
					path = filepath.Join("top/e", name)
				case "@n_":
					path = fifo("top", m)
				}
				if err := errors.Join(os.Remove(path), make(path)); err != nil {
					t.Fatal(err)
				}
				done := begin(func() (err error) {
					switch name {
					case "@state", "@line":
						_, err = s.Line(t.Context(), "e")
					case "@n_":
						_, err = s.Ahead(t.Context(), second)
					default:
						_, err = s.Join(t.Context(), "e", "", "")
					}
					return err
				})
				if err := within(t, "a call", done); !errors.Is(err, local.ErrDamaged) || !strings.Contains(err.Error(), path) {
					t.Errorf("%v, want ErrDamaged and the path", err)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestMask says that only those who may write to the folder may open its files, and so lock them: by their modes, and somebody else tries.
func TestMask(t *testing.T) {
	for perm, want := range map[fs.FileMode]struct{ file, folder fs.FileMode }{
		0o700: {0o600, 0o700},
		0o755: {0o600, 0o750},
		0o750: {0o600, 0o750},
		0o775: {0o660, 0o770},
		0o770: {0o660, 0o770},
	} {
		above := t.TempDir()
		dir := filepath.Join(above, "top")
		if err := errors.Join(os.Chmod(filepath.Dir(above), 0o755), os.Mkdir(dir, 0o700), os.Chmod(dir, perm)); err != nil {
			t.Fatal(err)
		}
		_, s := open(t, dir)
		m := join(t, s, "e", "")
		appendItem(t, s, "e", "")
		paths := []string{dir}
		for path, want := range map[string]fs.FileMode{
			"@lock": want.file, "@counter": want.file, "@next": want.file, "e/@line": want.file, "e/@state": want.file, "e/@" + m.Key: want.file, "e": want.folder,
		} {
			if fi, err := os.Stat(filepath.Join(dir, path)); err != nil || fi.Mode().Perm() != want {
				t.Errorf("in a folder with %v, %s: %v, %v; want %v", perm, path, fi.Mode(), err, want)
			}
			paths = append(paths, filepath.Join(dir, path))
		}
		if os.Geteuid() == 0 { // who may be another user
			said := startAs(t, stranger, "open", strings.Join(paths, string(filepath.ListSeparator))).say(t, "opens")
			if reads := perm&0o004 != 0; reads != (said[0] == 0) {
				t.Errorf("somebody else opens a folder with %v: %v", perm, syscall.Errno(said[0]))
			}
			for i, errno := range said[1:] {
				if errno != uint64(unix.EACCES) && errno != uint64(unix.EISDIR) { // a folder is never opened to write
					t.Errorf("in a folder with %v, somebody else opens %s: %v", perm, paths[1+i/2], syscall.Errno(errno))
				}
			}
		}
		if err := os.Chmod(filepath.Join(dir, "@lock"), 0o644); err != nil { // as earlier versions made it
			t.Fatal(err)
		}
		join(t, s, "e", "")
		if fi, err := os.Stat(filepath.Join(dir, "@lock")); err != nil || fi.Mode().Perm() != want.file {
			t.Errorf("in a folder with %v, @lock of an earlier version: %v, %v; want %v", perm, fi.Mode(), err, want.file)
		}
	}
}

// TestTakenAway says that a process does not trust a folder that somebody else has made where the one was
// that it has used.
func TestTakenAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "app")
	ownedBy(t, owner, dir, 0o700)
	b, s := open(t, dir)
	join(t, s, "e", "")
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	ownedBy(t, stranger, dir, 0o700)
	_, forger := open(t, dir)
	join(t, forger, "e", "forged")
	looks(t, s, "e", backend.ErrSessionEnded)
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Session: %v, want ErrDenied", err)
	}
}

// TestOperatorFollowsNoLink says that what an operator deletes lies in the folder: root may be the operator of another
// user's folder.
func TestOperatorFollowsNoLink(t *testing.T) {
	elsewhere, dir := t.TempDir(), t.TempDir()
	fifo := filepath.Join(elsewhere, "e", "@n_0000000001")
	err := errors.Join(os.Mkdir(filepath.Join(elsewhere, "e"), 0o700), unix.Mkfifo(fifo, 0o600),
		os.Symlink(elsewhere, filepath.Join(dir, "app")), os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		os.Symlink(elsewhere, filepath.Join(dir, "sub", "e")), os.Symlink(elsewhere, filepath.Join(dir, "sub", "@n_0000000002")))
	if err != nil {
		t.Fatal(err)
	}
	o := rig.OperatorOf(t, "local:"+dir)
	for act, err := range map[string]error{
		"Remove": o.Remove(t.Context(), backend.Member{Line: "app/e", Key: "n_0000000001"}),
		"Drop":   o.Drop(t.Context(), "app/e"),
		"Clear":  o.Clear(t.Context(), "app/e"),
	} {
		if !errors.Is(err, backend.ErrDenied) {
			t.Errorf("%s behind a link: %v, want ErrDenied", act, err)
		}
	}
	if err := o.Clear(t.Context(), "sub"); err != nil {
		t.Errorf("Clear of a folder with links: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "sub")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder with links is there: %v", err)
	}
	if _, err := os.Lstat(fifo); err != nil {
		t.Errorf("a file outside the folder was removed: %v", err)
	}
}
