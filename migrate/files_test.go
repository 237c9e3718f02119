//go:build linux

package migrate_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// folder returns a coordinator of its own.
func folder(t *testing.T) (dir string, b backend.Backend) {
	t.Helper()
	dir = t.TempDir()
	b, err := local.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir, b
}

// TestFiles says that the files which hold a leader's place are those of its members: of
// both before the cutover, and of the one on To after it, as the seal stands without its
// process.
func TestFiles(t *testing.T) {
	var dirs [2]string
	var sub [2]backend.Backend
	for side := range sub {
		dirs[side], sub[side] = folder(t)
	}
	b := migrate.New(sub[0], sub[1], &migrate.Options{From: "local:" + dirs[0], To: "local:" + dirs[1]})
	defer b.Close()
	stranger := backend.Member{Line: election, Key: "n_0000000001", Position: 1}
	if _, err := b.Begin(t.Context(), election); err != nil {
		t.Fatal(err)
	}
	s, m := leading(t.Context(), t, b)
	// holds checks which coordinators' members the files are that hold m's place.
	holds := func(when string, sides ...int) {
		t.Helper()
		files, err := s.Files(m)
		if err != nil || len(files) != len(sides) {
			t.Fatalf("%s: Files: %d files, %v; want %d", when, len(files), err, len(sides))
		}
		for i, side := range sides {
			defer files[i].Close()
			held, err := files[i].Stat()
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, o := range members(t, sub[side]) {
				fifo, err := os.Stat(filepath.Join(dirs[side], election, "@"+o.Key))
				found = found || err == nil && o.Value == m.Value && os.SameFile(fifo, held)
			}
			if !found {
				t.Errorf("%s: file %d, %s, is not that of the member in %s", when, i, files[i].Name(), dirs[side])
			}
		}
	}
	m.Value = "leader"
	holds("before the cutover", 0, 1)
	if _, err := s.Files(stranger); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Files of a stranger's place: %v, want %v", err, backend.ErrNotMember)
	}
	gone := make(chan error, 1)
	go func() { gone <- s.Gone(t.Context(), m) }()
	if _, err := b.Cutover(t.Context(), election); err != nil {
		t.Fatal(err)
	}
	holds("after the cutover", 1)
	if err := s.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
	if files, err := s.Files(m); len(files) > 0 {
		t.Errorf("Files after Leave: %d files, %v; want none", len(files), err)
	}
}

// members returns who stands in line on one coordinator.
func members(t *testing.T, b backend.Backend) []backend.Member {
	t.Helper()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Line(t.Context(), election)
	if err != nil {
		t.Fatal(err)
	}
	return l.Members
}

// TestFilesOfNone says that a coordinator whose places no files hold adds none.
func TestFilesOfNone(t *testing.T) {
	dir, old := folder(t)
	b := migrate.New(old, memory.New(nil).Client("a"), &migrate.Options{From: "local:" + dir, To: newURL, Begin: true})
	defer b.Close()
	s, m := leading(t.Context(), t, b)
	files, err := s.Files(m)
	if err != nil || len(files) != 1 {
		t.Fatalf("Files: %d files, %v; want that of the folder", len(files), err)
	}
	files[0].Close()
}

// TestDeadlineWhereOneHasNone says that a session which has ended, because it has on the
// coordinator that it needs no more, has a deadline that has passed, although the
// one by which it leads has none.
func TestDeadlineWhereOneHasNone(t *testing.T) {
	dir, old := folder(t)
	other := memory.New(nil).Client("a")
	b := migrate.New(old, other, &migrate.Options{From: "local:" + dir, To: newURL})
	defer b.Close()
	for _, step := range []step{b.Begin, b.Abort} {
		if _, err := step(t.Context(), election); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := leading(t.Context(), t, b)
	if d := s.Deadline(); !d.IsZero() {
		t.Fatalf("a leader by a folder alone has the deadline %v; want none", d)
	}
	other.Expire()
	<-s.Done()
	if d := s.Deadline(); d.IsZero() || d.After(time.Now()) {
		t.Errorf("the session has ended, and its deadline is %v; want one that has passed", d)
	}
}
