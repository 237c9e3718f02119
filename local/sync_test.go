//go:build linux

package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
)

// TestFoldersAboveAreSynced says that before the first number is reserved, all folders above are on the disk, by
// their entries in the ones above them: otherwise all would be gone after a power loss, and tokens would begin
// anew. It does not matter who has made them.
func TestFoldersAboveAreSynced(t *testing.T) {
	above := t.TempDir()
	var synced []string
	fsync = func(fd int) error {
		path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			t.Error(err)
		}
		synced = append(synced, path)
		return unix.Fsync(fd)
	}
	t.Cleanup(func() { fsync = unix.Fsync })
	top := filepath.Join(above, "a/b")
	f := newFolder(top, false, new(past))
	if err := f.makeTop(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.draw(0, 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	last := len(synced) - 1
	if synced[last] != top {
		t.Errorf("synced were %q, want %q at the end", synced, top)
	}
	for _, folder := range []string{filepath.Join(above, "a"), above, filepath.Dir(above)} {
		if at := slices.Index(synced, folder); at < 0 || at == last {
			t.Errorf("synced were %q, want %q before the end", synced, folder)
		}
	}
}

// countSyncs counts the calls of fsync until the test ends.
func countSyncs(t *testing.T) *atomic.Int64 {
	var n atomic.Int64
	old := fsync
	fsync = func(fd int) error { n.Add(1); return old(fd) }
	t.Cleanup(func() { fsync = old })
	return &n
}

// TestJoinSyncsNothing says that to join, to lead and to leave syncs nothing, in a name of old and in a new one, once the
// session has numbers. It syncs a file and a folder for each thousand numbers, and a write syncs the same.
func TestJoinSyncsNothing(t *testing.T) {
	syncs := countSyncs(t)
	b, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx := t.Context()
	s, err := b.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lead := func(line string) {
		j, err := s.Join(ctx, line, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if p, err := s.Ahead(ctx, j.Member); err != nil || !p.First {
			t.Fatalf("%+v, %v", p, err)
		}
		if err := s.Leave(ctx, j.Member); err != nil {
			t.Fatal(err)
		}
	}
	synced := func(what string, want int64, do func()) {
		t.Helper()
		before := syncs.Load()
		do()
		if n := syncs.Load() - before; n != want {
			t.Errorf("%s: %d syncs, want %d", what, n, want)
		}
	}
	lead("e") // the first number
	synced("to lead", 0, func() { lead("e") })
	synced("to lead in a new line", 0, func() { lead("a/b/c") })
	synced("to lead for as long as there are numbers", 0, func() {
		for range block - 2 { // two were drawn since the block was reserved
			lead("e")
		}
	})
	synced("to lead with the next numbers", 2, func() { lead("e") })
	put := func() {
		if _, err := s.Put(ctx, "a/r", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	synced("to write a new record", 4, put) // and the two folders above
	synced("to write it again", 2, put)
}

// TestTornLine has a @line as a power loss may leave it, and a FIFO beside it that nobody holds. Nobody stands then.
// Those who look and those who join at the same time never take it for damaged.
func TestTornLine(t *testing.T) {
	for name, torn := range map[string]string{"empty": "", "zeros": "\x00\x00\x00\x00", "cut off": string(seal(kindLine, bodyOf(loose)))[:40]} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx := t.Context()
			sessions := make([]backend.Session, 4)
			for i := range sessions {
				b, err := New(dir, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				if sessions[i], err = b.Session(ctx); err != nil {
					t.Fatal(err)
				}
			}
			var largest uint64
			for round := range 20 {
				line := fmt.Sprint("e", round)
				path := filepath.Join(dir, line)
				if err := errors.Join(os.Mkdir(path, 0o700), unix.Mkfifo(filepath.Join(path, fifoName(1)), 0o600),
					os.WriteFile(filepath.Join(path, lineName), []byte(torn), 0o600)); err != nil {
					t.Fatal(err)
				}
				if l, err := sessions[0].Line(ctx, line); err != nil || len(l.Members) != 0 {
					t.Fatalf("%+v, %v", l, err)
				}
				var all sync.WaitGroup
				for i, s := range sessions {
					all.Go(func() {
						if i%2 == 0 {
							for range 20 {
								if _, err := s.Line(ctx, line); err != nil {
									t.Error(err)
								}
							}
						} else if _, err := s.Join(ctx, line, "", ""); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				l, err := sessions[0].Line(ctx, line)
				if err != nil || len(l.Members) != 2 || l.Members[0].Position <= largest {
					t.Fatalf("%+v, %v, want two behind %d", l, err, largest)
				}
				largest = l.Members[1].Position
			}
		})
	}
}

// TestProbeWhileJoining has somebody test the locks of all FIFOs, as one does who has found a torn @line, while others
// make theirs. Nobody fails to join because of that.
func TestProbeWhileJoining(t *testing.T) {
	b, err := New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx := t.Context()
	s, err := b.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Join(ctx, "e", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Leave(ctx, first.Member); err != nil {
		t.Fatal(err)
	}
	d, err := folderOf(b).dir("e")
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	var probes sync.WaitGroup
	defer probes.Wait()
	stop := make(chan struct{})
	defer close(stop)
	for range 4 {
		probes.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := d.anyHeld(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 500 {
		j, err := s.Join(ctx, "e", "", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Leave(ctx, j.Member); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnpinAgain has a pinned member whose process lives, and a Leave of another one that fails when it has taken the member
// out of @state and has not synced that, as when it is killed. The member is then not one that is not pinned: the next Leave
// removes it.
func TestUnpinAgain(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	var sessions [2]backend.Session
	for i := range sessions {
		b, err := New(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if sessions[i], err = b.Session(ctx); err != nil {
			t.Fatal(err)
		}
	}
	owner, other := sessions[0], sessions[1]
	j, err := owner.Join(ctx, "e", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Pin(ctx, j.Member, backend.Header{}, backend.Absent); err != nil {
		t.Fatal(err)
	}
	m := j.Member
	m.Pinned = true
	old := fsync
	t.Cleanup(func() { fsync = old })
	fsync = func(fd int) error {
		var is unix.Stat_t
		if err := unix.Fstat(fd, &is); err == nil && is.Mode&unix.S_IFMT == unix.S_IFDIR {
			return unix.EIO
		}
		return nil
	}
	if err := other.Leave(ctx, m); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Leave that is not synced: %v, want ErrUnavailable", err)
	}
	if err := other.Leave(ctx, m); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Leave of what has gone, which is not synced: %v, want ErrUnavailable", err)
	}
	fsync = old
	if err := other.Leave(ctx, m); err != nil {
		t.Errorf("Leave again: %v", err)
	}
	if l, err := other.Line(ctx, "e"); err != nil || len(l.Members) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
}
