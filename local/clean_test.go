//go:build linux

package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
)

// TestClean says that the folder of a name goes when nobody has used it for a while and somebody uses new
// names, unless something is kept in it, and that numbers go on growing.
func TestClean(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	const n = 60
	last := uint64(0)
	for i := range n {
		m := join(t, s, fmt.Sprint("old/", i), "")
		last = m.Position
		leave(t, s, m)
	}
	join(t, s, "old/standing", "")
	appendItem(t, s, "old/item", "")
	if _, err := s.Put(t.Context(), "old/record", nil, nil); err != nil {
		t.Fatal(err)
	}
	kept := []string{"standing", "item", "record", "recent"}
	leave(t, s, join(t, s, "old/recent", ""))
	folders, err := filepath.Glob(filepath.Join(dir, "old", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) != n+len(kept) {
		t.Errorf("%d folders of names that have just been used, want %d", len(folders), n+len(kept))
	}
	long := time.Now().Add(-time.Hour)
	for _, folder := range folders {
		if filepath.Base(folder) == "recent" {
			continue
		}
		if err := os.Chtimes(folder, long, long); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		leave(t, s, join(t, s, fmt.Sprint("new/", i), ""))
	}
	left, err := filepath.Glob(filepath.Join(dir, "old", "[0-9]*"))
	if err != nil || len(left) > n/2 {
		t.Errorf("%d of %d folders are left, %v", len(left), n, err)
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(dir, "old", name)); err != nil {
			t.Error(err)
		}
	}
	if l, err := s.Line(t.Context(), "old/standing"); err != nil || len(l.Members) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	if r, err := s.Get(t.Context(), "old/record"); err != nil || r.Version == backend.Absent {
		t.Errorf("%+v, %v", r, err)
	}
	for i := range n {
		if m := join(t, s, fmt.Sprint("old/", i), ""); m.Position <= last {
			t.Errorf("position %d after %d", m.Position, last)
		}
	}
}

// TestCleanOthers has empty folders of others in the top folder, such as an application has for its own files. They stay.
func TestCleanOthers(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	leave(t, s, join(t, s, "old", ""))
	others := []string{"spool/new", "spool/cur", "cache"}
	for _, name := range others {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-time.Hour)
	for _, name := range append(others, "spool", "old") {
		if err := os.Chtimes(filepath.Join(dir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 { // each looks at two others, and there are seven at first
		leave(t, s, join(t, s, fmt.Sprint("new/", i), ""))
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestCleanLittle makes many folders at once. The call that does so looks at a few others only, and later calls do
// the rest.
func TestCleanLittle(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	const n = 60
	for i := range n {
		leave(t, s, join(t, s, fmt.Sprint("old/", i), ""))
	}
	folders, err := filepath.Glob(filepath.Join(dir, "old", "*"))
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	for _, folder := range folders {
		if err := os.Chtimes(folder, long, long); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		left, err := filepath.Glob(filepath.Join(dir, "old", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}
	before := left()
	m := join(t, s, "new"+strings.Repeat("/x", 2*n), "")
	if now := left(); before-now > 8 {
		t.Errorf("one Join has removed %d folders", before-now)
	}
	for range 2 * n {
		leave(t, s, m)
		m = join(t, s, m.Line, "")
	}
	if now := left(); now > n/2 {
		t.Errorf("%d of %d folders are left", now, n)
	}
}
