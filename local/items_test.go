//go:build linux

package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/succession-dev/succession/backend"
)

// TestItems says that an item takes no descriptor, is found by whoever opens the folder later,
// keeps whoever stands behind it waiting until it is removed, and then leaves nothing behind.
func TestItems(t *testing.T) {
	dir := t.TempDir()
	b, s := open(t, dir)
	ctx := t.Context()
	by := join(t, s, "takers", "")
	fds := count(t, "fd")
	item := appendItem(t, s, "a/q", "first")
	if now := count(t, "fd"); now > fds {
		t.Errorf("%d descriptors before Append, %d after", fds, now)
	}
	behind := join(t, s, "a/q", "behind")
	if err := s.Leave(ctx, behind); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	_, s = open(t, dir)
	behind = join(t, s, "a/q", "behind")
	if p := ahead(t, s, behind); p.Ahead != item {
		t.Fatalf("ahead of a member behind an item: %+v, want %+v", p, item)
	}
	gone := begin(func() error { return s.Gone(ctx, item) })
	blocked(t, "Gone of an item", gone)
	if err := s.Remove(ctx, item, by); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Remove by a member whose session was closed: %v", err)
	}
	if err := s.Remove(ctx, behind, item); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Remove of a member that is not pinned: %v", err)
	}
	for range 2 {
		if err := s.Remove(ctx, item, behind); err != nil { // of the same line
			t.Fatal(err)
		}
	}
	if err := within(t, "Gone of an item that was removed", gone); err != nil {
		t.Error(err)
	}
	if p := ahead(t, s, behind); !p.First {
		t.Errorf("after the item: %+v", p)
	}
	last := appendItem(t, s, "a/q2", "last")
	if err := s.Remove(ctx, last, behind); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "q2")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a line without members: %v", err)
	}
}
