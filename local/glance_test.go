//go:build linux

package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/local"
)

// TestLockReplaced says that a candidate that has looked before finds the lock file that others lock,
// also when an operator has removed the one that it looked by.
func TestLockReplaced(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	deciding, other := open(t, dir)
	first, second := join(t, other, "e", ""), join(t, other, "e", "")
	m := join(t, s, "e", "")
	leave(t, other, second)
	if p := ahead(t, s, m); p.Ahead != first { // by a lock file that stays open
		t.Fatalf("%+v", p)
	}
	if err := os.Remove(filepath.Join(dir, "@lock")); err != nil {
		t.Fatal(err)
	}
	goOn, err := local.StopBeforeStore(t.Context(), deciding, "e")
	if err != nil {
		t.Fatal(err)
	}
	leave(t, other, first)
	// What is being decided may be on condition of the member that left.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if p, err := s.Ahead(ctx, m); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Ahead while somebody decides: %+v, %v; want the end of its context", p, err)
	}
	goOn()
	if p := ahead(t, s, m); !p.First {
		t.Errorf("Ahead: %+v", p)
	}
}

// TestFileReplaced says that a member whose FIFO was moved away has gone, also if another file is at its
// place.
func TestFileReplaced(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	m := join(t, s, "e", "")
	path := fifo(dir, m)
	if err := os.Rename(path, filepath.Join(dir, "@away")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Ahead(t.Context(), m); !errors.Is(err, backend.ErrNotMember) {
		t.Errorf("Ahead: %+v, %v; want ErrNotMember", p, err)
	}
}

// TestPinnedBeforeItWent says that a member that was pinned before its process let go of it stands for
// the one who waits behind it, also if that was told nothing of the pin.
func TestPinnedBeforeItWent(t *testing.T) {
	local.WithoutInotify(t)
	dir := t.TempDir()
	b, s := open(t, dir)
	_, other := open(t, dir)
	leader, m := join(t, s, "e", ""), join(t, other, "e", "")
	now, done := watchPlace(t, other, m, ahead(t, other, m))
	if err := s.Pin(t.Context(), leader, backend.Header{}, backend.Absent); err != nil {
		t.Fatal(err)
	}
	local.Abandon(b)
	if err := within(t, "WatchPlace", done); err != nil || now.First || !now.Ahead.Pinned {
		t.Errorf("WatchPlace: %+v, %v; want the pinned member ahead", now, err)
	}
}

// TestLockMade says that of many who make the lock file at the same time all lock the same one, and that
// nothing else is left.
func TestLockMade(t *testing.T) {
	for range 20 {
		dir := coordtest.Folder(t)
		var all sync.WaitGroup
		for range 8 {
			_, s := open(t, dir)
			all.Go(func() {
				if _, err := s.Join(t.Context(), "e", "", ""); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		_, s := open(t, dir)
		if got := values(t, s, "e"); len(got) != 8 {
			t.Errorf("%d of 8 stand in line", len(got))
		}
		if left, err := filepath.Glob(filepath.Join(dir, "@tmp*")); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	}
}
