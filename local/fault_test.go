//go:build linux

package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/local"
)

// TestWriteFails says that a write that fails, as on a full disk, changes nothing,
// and that one can still leave.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	ctx := t.Context()
	m, item := join(t, s, "e", "m"), appendItem(t, s, "e", "item")
	v, err := s.Put(ctx, "e", backend.Header{Fence: 1}.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	// A folder in the place of the file makes every write of the state fail.
	obstacle := filepath.Join(local.TmpFile(dir, "e"), "x")
	if err := os.MkdirAll(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Join(ctx, "e", "", ""); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Join: %v", err)
	}
	if _, err := s.Append(ctx, "e", ""); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Append: %v", err)
	}
	if err := s.Remove(ctx, item, m); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Remove: %v", err)
	}
	if _, err := s.Put(ctx, "e", nil, nil); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Put: %v", err)
	}
	if err := s.Pin(ctx, m, backend.Header{Fence: 2}, v); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Pin: %v", err)
	}
	l, err := s.Line(ctx, "e")
	if err != nil || !slices.Equal(l.Members, []backend.Member{m, item}) || l.Version != v || l.Header.Fence != 1 {
		t.Errorf("the line is %+v, %v", l, err)
	}
	fifos, err := filepath.Glob(filepath.Join(dir, "e", "@n_*"))
	if err != nil || len(fifos) != 2 {
		t.Errorf("FIFOs: %q, %v; want those of the two members", fifos, err)
	}
	if err := os.RemoveAll(filepath.Dir(obstacle)); err != nil {
		t.Fatal(err)
	}
	leave(t, s, m)
	leave(t, s, item)
	if got := values(t, s, "e"); len(got) != 0 {
		t.Errorf("after Leave: %q", got)
	}
	join(t, s, "e", "")
}

// TestStoppedWriter says what still works while some process is stopped in the
// middle of a write: all but writing.
func TestStoppedWriter(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	_, hasty := openWith(t, dir, &local.Options{LockTimeout: 200 * time.Millisecond})
	first, second := join(t, s, "e", ""), join(t, s, "e", "")
	lock, err := os.OpenFile(filepath.Join(dir, "@lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	all := unix.Flock_t{Type: unix.F_WRLCK} // from 0, and of length 0: to the end of all
	if err := unix.FcntlFlock(lock.Fd(), unix.F_OFD_SETLK, &all); err != nil {
		t.Fatal(err)
	}
	if _, err := hasty.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Join: %v, want ErrUnavailable", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Put(ctx, "r", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put: %v, want the end of its context", err)
	}
	if p := ahead(t, s, second); p.Ahead != first {
		t.Errorf("Ahead: %+v", p)
	}
	gone := begin(func() error { return s.Gone(t.Context(), first) })
	blocked(t, "Gone", gone)
	leave(t, s, first)
	if err := within(t, "Gone", gone); err != nil {
		t.Error(err)
	}
	// The write under way may be on condition of the member that left.
	if _, err := hasty.Ahead(t.Context(), second); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Ahead after a departure: %v, want ErrUnavailable", err)
	}
	lock.Close()
	if p := ahead(t, s, second); !p.First {
		t.Errorf("Ahead: %+v", p)
	}
}

// TestStoppedWriterOfAnother says that a process which is stopped while it writes to one
// name keeps nobody from writing to others.
func TestStoppedWriterOfAnother(t *testing.T) {
	dir := coordtest.Folder(t)
	stopped, _ := open(t, dir)
	_, s := open(t, dir)
	goOn, err := local.StopBeforeStore(t.Context(), stopped, "stopped")
	if err != nil {
		t.Fatal(err)
	}
	defer goOn()
	watch := calm.Start(t)
	if _, err := s.Join(t.Context(), "e", "", ""); err != nil {
		t.Errorf("Join: %v", err)
	}
	if _, err := s.Put(t.Context(), "r", nil, nil); err != nil {
		t.Errorf("Put: %v", err)
	}
	watch.Within(prompt, "to join, and to write")
}

// TestStoppedDraw says that a process which is stopped while it takes a number keeps nobody from writing to
// other names, and that numbers go on growing, also when it goes on. If all counters are locked, the
// error says so.
func TestStoppedDraw(t *testing.T) {
	dir := coordtest.Folder(t)
	_, s := open(t, dir)
	last := join(t, s, "e", "").Position
	larger := func(now uint64) {
		t.Helper()
		if now <= last {
			t.Errorf("number %d after %d", now, last)
		}
		last = now
	}
	var goOn []func() error
	for i := range 4 { // as many as there are counters
		stopped, _ := open(t, dir)
		f, err := local.StopInDraw(t.Context(), stopped, fmt.Sprint("stopped", i))
		if err != nil {
			t.Fatal(err)
		}
		goOn = append(goOn, f)
		if i == 3 {
			break
		}
		watch := calm.Start(t)
		larger(join(t, s, "e", "").Position)
		v, err := s.Put(t.Context(), "e", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		larger(uint64(v))
		watch.Within(prompt, "with %d stopped, it", i+1)
	}
	if _, err := s.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "@counter") {
		t.Errorf("with all stopped: %v, want ErrUnavailable and the counter named", err)
	}
	for _, f := range goOn {
		if err := f(); err != nil {
			t.Error(err)
		}
		larger(join(t, s, "e", "").Position)
	}
	if err := os.RemoveAll(filepath.Join(dir, "e")); err != nil {
		t.Fatal(err)
	}
	larger(join(t, s, "e", "").Position)
}

// TestPinLeft says that a member that leaves while it is being pinned has left: the pin finds nobody.
func TestPinLeft(t *testing.T) {
	local.WithoutInotify(t) // as in TestManyDraw
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b, s := open(t, dir)
		m := join(t, s, "e", "")
		goOn, err := local.StopInDraw(t.Context(), b, "slow")
		if err != nil {
			t.Fatal(err)
		}
		pinned := begin(func() error { return s.Pin(t.Context(), m, backend.Header{}, backend.Absent) })
		synctest.Wait() // it waits for its number
		leave(t, s, m)
		if err := goOn(); err != nil {
			t.Error(err)
		}
		if err := <-pinned; !errors.Is(err, backend.ErrNotMember) {
			t.Errorf("Pin of a member that has left: %v, want ErrNotMember", err)
		}
		if l, err := s.Line(t.Context(), "e"); err != nil || len(l.Members) > 0 {
			t.Errorf("%+v stand, %v", l.Members, err)
		}
	})
}

// TestStalledUnpin says that a disk which does not answer the one who removes a pinned member keeps nobody else from looking
// and leaving.
func TestStalledUnpin(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	item := appendItem(t, s, "items", "")
	first, second := join(t, s, "e", ""), join(t, s, "e", "")
	answers := local.StallDisk(t)
	left := begin(func() error { return s.Leave(t.Context(), item) })
	answer := <-answers
	looks := begin(func() error {
		p, err := s.Ahead(t.Context(), second)
		if err == nil && p.Ahead != first {
			err = fmt.Errorf("it stands at %+v", p)
		}
		return errors.Join(err, s.Leave(t.Context(), first))
	})
	if err := within(t, "to look, and to leave,", looks); err != nil {
		t.Error(err)
	}
	answer()
	if err := within(t, "Leave", left); err != nil {
		t.Error(err)
	}
}

// TestDrawUnlocked says that a counter which cannot be locked is not taken for one that others have locked.
func TestDrawUnlocked(t *testing.T) {
	b, _ := open(t, t.TempDir())
	if err := local.DrawUnlocked(t.Context(), b); !errors.Is(err, unix.EBADF) {
		t.Errorf("%v, want EBADF", err)
	}
}

// TestManyDraw says that those of one process who take a number at the same time wait for each other, however
// long that takes: none of them is refused, or takes another counter, as if a process were stopped.
func TestManyDraw(t *testing.T) {
	// In virtual time, which stands still while a goroutine is in the kernel, as that of inotify always is.
	local.WithoutInotify(t)
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b, s := open(t, dir)
		goOn, err := local.StopInDraw(t.Context(), b, "slow")
		if err != nil {
			t.Fatal(err)
		}
		var joins []<-chan error
		for i := range 3 {
			joins = append(joins, begin(func() error { _, err := s.Join(t.Context(), fmt.Sprint("e", i), "", ""); return err }))
		}
		time.Sleep(5 * time.Second) // longer than anybody waits for a process that is stopped
		if err := goOn(); err != nil {
			t.Error(err)
		}
		for _, done := range joins {
			if err := <-done; err != nil {
				t.Errorf("Join: %v", err)
			}
		}
		if others, _ := filepath.Glob(filepath.Join(dir, "@counter-*")); len(others) > 0 {
			t.Errorf("there are %v, and no process was stopped", others)
		}
	})
}

// TestStoppedDrawOnce says that while a process is stopped which has locked a counter, one of this process
// waits for that, and not each. When the other goes on, its counter is used again.
func TestStoppedDrawOnce(t *testing.T) {
	local.WithoutInotify(t) // as in TestManyDraw
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		stopped, _ := open(t, dir)
		_, s := open(t, dir)
		goOn, err := local.StopInDraw(t.Context(), stopped, "stopped")
		if err != nil {
			t.Fatal(err)
		}
		var waited []time.Duration
		for i := range 3 {
			start := time.Now()
			join(t, s, fmt.Sprint("e", i), "")
			waited = append(waited, time.Since(start))
		}
		if waited[0] == 0 || waited[1] != 0 || waited[2] != 0 {
			t.Errorf("those who joined waited %v, want only the first to wait", waited)
		}
		if err := goOn(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "@next")
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		join(t, s, "e", "")
		if after, err := os.ReadFile(path); err != nil || slices.Equal(before, after) {
			t.Errorf("%s was not used again, %v", path, err)
		}
	})
}

// TestStoppedWriterHere says that those who wait for a name which another process has locked keep nobody of
// their own process from writing to other names.
func TestStoppedWriterHere(t *testing.T) {
	dir := t.TempDir()
	stopped, _ := open(t, dir)
	_, s := open(t, dir)
	goOn, err := local.StopInJoin(t.Context(), stopped, "stopped")
	if err != nil {
		t.Fatal(err)
	}
	defer goOn()
	ctx, cancel := context.WithCancel(t.Context())
	waits := begin(func() error { _, err := s.Join(ctx, "stopped", "", ""); return err })
	blocked(t, "Join", waits)
	for i := range 300 { // more than there could be queues
		// This locks, and need not write.
		if _, err := s.Put(t.Context(), fmt.Sprint("r", i), nil, &backend.If{Version: 1}); !errors.Is(err, backend.ErrVersion) {
			t.Errorf("Put: %v, want ErrVersion", err)
			break
		}
	}
	cancel()
	if err := within(t, "Join", waits); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestWithoutInotify says that deaths and departures are noticed at once also where
// no inotify instance is to be had, and the rest a little later.
func TestWithoutInotify(t *testing.T) {
	local.WithoutInotify(t)
	dir := t.TempDir()
	_, s := open(t, dir)
	a, b := join(t, s, "e", ""), join(t, s, "e", "")
	line, err := s.Line(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	gone := begin(func() error { return s.Gone(t.Context(), a) })
	changed := begin(func() error { _, err := s.WatchLine(t.Context(), "e", line); return err })
	watch := begin(func() error { _, err := s.Watch(t.Context(), "r", backend.Absent); return err })
	blocked(t, "Gone", gone)
	blocked(t, "WatchLine", changed)
	watching := calm.Start(t)
	leave(t, s, a)
	if err := within(t, "Gone", gone); err != nil {
		t.Error(err)
	}
	if err := within(t, "WatchLine", changed); err != nil {
		t.Error(err)
	}
	watching.Within(500*time.Millisecond, "to notice a departure")
	gone = begin(func() error { return s.Gone(t.Context(), b) })
	blocked(t, "Gone", gone)
	if err := os.Remove(fifo(dir, b)); err != nil {
		t.Fatal(err)
	}
	if err := within(t, "Gone", gone); err != nil {
		t.Error(err)
	}
	if _, err := s.Put(t.Context(), "r", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := within(t, "Watch", watch); err != nil {
		t.Error(err)
	}
}

// TestOverflow says that an overflow of inotify's queue makes everybody look.
func TestOverflow(t *testing.T) {
	dir := t.TempDir()
	b, s := open(t, dir)
	m := join(t, s, "e", "")
	gone := begin(func() error { return s.Gone(t.Context(), m) })
	blocked(t, "Gone", gone)
	defer local.StallInotify(b)()
	if err := os.Remove(fifo(dir, m)); err != nil {
		t.Fatal(err)
	}
	blocked(t, "Gone", gone)
	local.Overflow(b)
	if err := within(t, "Gone", gone); err != nil {
		t.Error(err)
	}
}

// TestPinnedAndDead says that nobody takes a member for dead that was pinned before
// its process died, also not in the moment between.
func TestPinnedAndDead(t *testing.T) {
	dir := t.TempDir()
	b1, err := local.New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b1.Close()
	_, s2 := open(t, dir)
	for i := range 60 {
		line := fmt.Sprintf("e%d", i)
		s1, err := b1.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gate := join(t, s1, line, "")
		m := join(t, s2, line, "")
		done := begin(func() error {
			err := s1.Pin(t.Context(), gate, backend.Header{}, backend.Absent)
			return errors.Join(err, s1.Close(t.Context()))
		})
		for ended := false; !ended; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				ended = true
			default:
			}
			if p := ahead(t, s2, m); p.First {
				t.Fatalf("round %d: one leads past a pinned member", i)
			}
		}
	}
}

// TestGuard says that once somebody leads, no write guarded by the member before
// it lands any more.
func TestGuard(t *testing.T) {
	dir := t.TempDir()
	_, s1 := open(t, dir)
	_, s2 := open(t, dir)
	ctx := t.Context()
	for i := range 40 {
		line := fmt.Sprintf("e%d", i)
		old, m := join(t, s1, line, ""), join(t, s2, line, "")
		writer := begin(func() error {
			for {
				if _, err := s1.Put(ctx, "r", nil, &backend.If{Member: old}); err != nil {
					return err
				}
			}
		})
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		if err := os.Remove(fifo(dir, old)); err != nil {
			t.Fatal(err)
		}
		for !ahead(t, s2, m).First {
		}
		before, err := s2.Get(ctx, "r")
		if err != nil {
			t.Fatal(err)
		}
		if err := within(t, "the writer", writer); !errors.Is(err, backend.ErrNotMember) {
			t.Fatalf("the writer: %v, want ErrNotMember", err)
		}
		if after, err := s2.Get(ctx, "r"); err != nil || after.Version != before.Version {
			t.Fatalf("round %d: version %d when the next led, %d later (%v)", i, before.Version, after.Version, err)
		}
		leave(t, s2, m)
	}
}

// An item whose FIFO an operator has removed does not stand: nobody gets it.
func TestRemovedItem(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	removed, err := s.Append(t.Context(), "items", "removed")
	if err != nil {
		t.Fatal(err)
	}
	next, err := s.Append(t.Context(), "items", "next")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(fifo(dir, removed)); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Free(t.Context(), "items", "claims"); err != nil || m != next {
		t.Errorf("free is %+v, %v; want %+v", m, err, next)
	}
	if _, err := s.Claim(t.Context(), "claims", "\n"+kit.Subject(removed), "", removed); !errors.Is(err, backend.ErrTaken) {
		t.Errorf("a claim of the removed item: %v", err)
	}
	if _, err := s.Claim(t.Context(), "claims", "\n"+kit.Subject(next), "", next); err != nil {
		t.Errorf("a claim of the next one: %v", err)
	}
}
