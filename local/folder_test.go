//go:build linux

package local_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/local"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, u := range []string{"local:" + dir + "/abs", "local:rel", "local://" + dir + "/slashes"} {
		b, err := succession.Connect(t.Context(), u)
		if err != nil {
			t.Errorf("%s: %v", u, err)
			continue
		}
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		join(t, s, "e", "")
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, sub := range []string{"abs", "rel", "slashes"} {
		if fi, err := os.Stat(filepath.Join(dir, sub)); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", sub, fi, err)
		}
	}
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("open", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod("open", 0o777); err != nil {
		t.Fatal(err)
	}
	for u, want := range map[string]error{
		"local://host" + dir:     backend.ErrInvalid,
		"local:" + dir + "?a=b":  backend.ErrInvalid,
		"local:" + dir + "/open": backend.ErrDenied,
		"local:" + dir + "/file": nil, // any error
	} {
		b, err := succession.Connect(t.Context(), u)
		if err == nil {
			b.Close()
		}
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", u, err, want)
		}
	}
}

// TestLookingMakesNothing says that whoever only looks makes no folder, and sees what others
// make.
func TestLookingMakesNothing(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "var", "app")
	b, s := open(t, dir)
	ctx := t.Context()
	if got := values(t, s, "a/e"); len(got) != 0 {
		t.Errorf("%q stand in line", got)
	}
	if r, err := s.Get(ctx, "a/r"); err != nil || r.Version != backend.Absent {
		t.Errorf("Get: %+v, %v", r, err)
	}
	if names, err := s.List(ctx, "a"); err != nil || len(names) != 0 {
		t.Errorf("List: %q, %v", names, err)
	}
	for range 2 { // what was removed again is looked at as before
		joined := begin(func() error { _, err := s.WatchLine(ctx, "a/e", backend.Line{}); return err })
		watch := begin(func() error { _, err := s.Watch(ctx, "a/r", backend.Absent); return err })
		blocked(t, "WatchLine", joined)
		blocked(t, "Watch", watch)
		if made, err := os.ReadDir(top); err != nil || len(made) != 0 {
			t.Fatalf("looking made %v, %v", made, err)
		}
		_, writer := open(t, dir)
		join(t, writer, "a/e", "")
		if err := within(t, "WatchLine", joined); err != nil {
			t.Error(err)
		}
		if _, err := writer.Put(ctx, "a/r", nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := within(t, "Watch", watch); err != nil {
			t.Error(err)
		}
		writer.Close(ctx)
		if err := os.RemoveAll(filepath.Join(top, "var")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, "a/r"); !errors.Is(err, backend.ErrSessionEnded) {
			t.Errorf("Get in a folder that was removed: %v", err)
		}
		var err error
		if s, err = b.Session(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRootWrites says that a folder's owner can still use it after root has written there,
// and that a file that was left by a killed process of another user is in nobody's way.
func TestRootWrites(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const user = 65534
	for _, perm := range []fs.FileMode{0o700, 0o770 | fs.ModeSetgid} {
		top := t.TempDir()
		dir := filepath.Join(top, "app")
		if err := errors.Join(os.Chmod(filepath.Dir(top), 0o755), os.Mkdir(dir, 0o700), os.Chown(dir, user, user), os.Chmod(dir, perm)); err != nil {
			t.Fatal(err)
		}
		_, s := open(t, dir)
		m := join(t, s, "e", "")
		if _, err := s.Put(t.Context(), "a/r", nil, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(local.TmpFile(dir, "e"), nil, 0o600); err != nil { // of root's
			t.Fatal(err)
		}
		p := startAs(t, user, "stand", dir)
		p.say(t, "joined")
		leave(t, s, m)
		p.say(t, "leads")
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			fi, err := e.Info()
			if st := fi.Sys().(*syscall.Stat_t); st.Uid != user || st.Gid != user {
				t.Errorf("%s is user %d's, of group %d", path, st.Uid, st.Gid)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestFileSystem says that no folder is taken whose file system is not known.
func TestFileSystem(t *testing.T) {
	_, err := local.New("/proc", nil)
	if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "a file system of the unknown kind 0x9fa0") {
		t.Errorf("a folder on procfs: %v", err)
	}
}

// TestDefaultFolder says that the default folder is trusted only if it is the
// user's alone.
func TestDefaultFolder(t *testing.T) {
	if want := fmt.Sprintf("/var/tmp/succession-%d", os.Geteuid()); local.DefaultDir() != want {
		t.Errorf("DefaultDir() = %q, want %q", local.DefaultDir(), want)
	}
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if perm, err := local.MakeDefault(good); err != nil || perm != 0o700 {
		t.Errorf("a new folder: %v, %v", perm, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(dir, "group")
	if err := errors.Join(os.Mkdir(group, 0o700), os.Chmod(group, 0o770)); err != nil {
		t.Fatal(err)
	}
	foreign := "/usr" // which is root's
	if os.Geteuid() == 0 {
		foreign = filepath.Join(dir, "foreign")
		if err := errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 54321, 54321)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{link, group, foreign} {
		if _, err := local.MakeDefault(path); !errors.Is(err, backend.ErrDenied) && !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v, want it refused", path, err)
		}
	}
}

// TestRights says that what lies in a folder has the rights of the folder, whatever
// the umask.
func TestRights(t *testing.T) {
	for _, bits := range []fs.FileMode{0, fs.ModeSetgid} {
		dir := filepath.Join(t.TempDir(), "top")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		group := os.Getegid()
		if bits != 0 && os.Geteuid() == 0 { // others can give it to groups of theirs alone
			group = 54321
		}
		if err := errors.Join(os.Chown(dir, -1, group), os.Chmod(dir, 0o770|bits)); err != nil {
			t.Fatal(err)
		}
		_, s := open(t, dir)
		m := join(t, s, "a/e", "")
		appendItem(t, s, "a/e", "")
		for path, want := range map[string]fs.FileMode{
			"a": fs.ModeDir | bits | 0o770, "a/e": fs.ModeDir | bits | 0o770, "a/e/@state": 0o660, "a/e/@line": 0o660, "@counter": 0o660, "@next": 0o660, "@lock": 0o660,
			"a/e/@" + m.Key: fs.ModeNamedPipe | 0o660,
		} {
			fi, err := os.Stat(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			if gid := fi.Sys().(*syscall.Stat_t).Gid; fi.Mode() != want || gid != uint32(group) {
				t.Errorf("%s under a folder with %v: %v of group %d; want %v of group %d", path, 0o770|bits, fi.Mode(), gid, want, group)
			}
		}
	}
}

// TestDamage says that a damaged file is an error that names it, and that nothing
// is written over it.
func TestDamage(t *testing.T) {
	damages := map[string]func([]byte) []byte{
		"empty":    func([]byte) []byte { return nil },
		"cut off":  func(b []byte) []byte { return b[:len(b)-2] },
		"garbled":  func(b []byte) []byte { b[len(b)-2] ^= 1; return b },
		"stranger": func([]byte) []byte { return []byte("hello\n") },
	}
	for name, damage := range damages {
		for _, file := range []string{"e/@state", "e/@line", "@counter"} {
			t.Run(file+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				b, s := open(t, dir)
				m := join(t, s, "e", "")
				appendItem(t, s, "e", "")
				path := filepath.Join(dir, file)
				good, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				bad := damage(append([]byte(nil), good...))
				if err := os.WriteFile(path, bad, 0o600); err != nil {
					t.Fatal(err)
				}
				check := func(op string, err error) {
					t.Helper()
					if !errors.Is(err, local.ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "emove it") {
						t.Errorf("%s: %v", op, err)
					}
				}
				_, err = s.Join(t.Context(), "e", "", "")
				check("Join", err)
				_, err = s.Put(t.Context(), "e", nil, nil)
				check("Put", err)
				_, err = s.Append(t.Context(), "e", "")
				check("Append", err)
				if file == "@counter" {
					check("Session", errors.Join(s.Close(t.Context()), func() error { _, err := b.Session(t.Context()); return err }()))
				} else {
					_, err = s.Ahead(t.Context(), m)
					check("Ahead", err)
					_, err = s.Line(t.Context(), "e")
					check("Line", err)
				}
				if now, err := os.ReadFile(path); err != nil || string(now) != string(bad) {
					t.Errorf("%s is now %q, %v", path, now, err)
				}
				// What the message advises works, and tokens grow.
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				s, err = b.Session(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if later := join(t, s, "e", ""); later.Position <= m.Position {
					t.Errorf("position %d after %d", later.Position, m.Position)
				}
			})
		}
	}
}

// TestReset says that a counter that was put back is noticed.
func TestReset(t *testing.T) {
	dir := t.TempDir()
	b, s := open(t, dir)
	join(t, s, "e", "")
	path := filepath.Join(dir, "@counter")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, later := open(t, dir) // it reserves other numbers
	m := join(t, later, "e", "")
	_, other := open(t, dir)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := later.Join(t.Context(), "f", "", ""); !errors.Is(err, backend.ErrReset) {
		t.Errorf("Join: %v", err)
	}
	if _, err := s.Join(t.Context(), "f", "", ""); !errors.Is(err, backend.ErrReset) {
		t.Errorf("Join of the one who had joined before: %v", err)
	}
	// Without @next, a backend that has seen nothing finds it in the line.
	if err := os.Remove(filepath.Join(dir, "@next")); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrReset) {
		t.Errorf("another's Join: %v", err)
	}
	if _, err := s.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrReset) {
		t.Errorf("Join: %v", err)
	}
	s.Close(t.Context())
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrReset) {
		t.Errorf("Session: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if s, err = b.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := join(t, s, "f", ""); after.Position <= m.Position {
		t.Errorf("position %d after %d", after.Position, m.Position)
	}
}

// TestFirstUse has many use a new folder at the same time, also where the file system cannot rename without
// replacing. All of them must open the same lock file, or two would lock different ones.
func TestFirstUse(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		if refuse {
			local.RefuseNoReplace(t)
		}
		for range 200 {
			dir := t.TempDir()
			files := make([]*os.File, 8)
			var all sync.WaitGroup
			start := make(chan struct{})
			for i := range files {
				all.Go(func() {
					<-start
					file, err := local.OpenLock(dir)
					if err != nil {
						t.Error(err)
						return
					}
					files[i] = file
				})
			}
			close(start)
			all.Wait()
			if t.Failed() {
				return
			}
			first, err := files[0].Stat()
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if is, err := file.Stat(); err != nil || !os.SameFile(is, first) {
					t.Fatalf("without renames that replace nothing: %v; two have opened different lock files, %v", refuse, err)
				}
				file.Close()
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Fatalf("in the folder is %v, %v; want @lock alone", left, err)
			}
		}
	}
}

// TestFirstJoin has many join a line in a new folder, on a file system that cannot rename without replacing.
func TestFirstJoin(t *testing.T) {
	local.RefuseNoReplace(t)
	dir := coordtest.Folder(t)
	const n = 8
	positions := make(chan uint64, n)
	var all sync.WaitGroup
	for range n {
		_, s := open(t, dir)
		all.Go(func() {
			m, err := s.Join(t.Context(), "a/b/c", "", "")
			if err != nil {
				t.Error(err)
			}
			positions <- m.Position
		})
	}
	all.Wait()
	close(positions)
	seen := make(map[uint64]bool)
	for p := range positions {
		if seen[p] {
			t.Errorf("two have position %d", p)
		}
		seen[p] = true
	}
}
