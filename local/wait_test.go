//go:build linux

package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
)

// TestWatchLine says that WatchLine returns for each way in which a line changes, and for nothing
// else: not where a member is pinned, which it then still watches.
func TestWatchLine(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	b, other := open(t, dir)
	ctx := t.Context()
	var seen backend.Line
	var done <-chan error
	change := func(what string, do func(), want ...string) {
		t.Helper()
		var now backend.Line
		done = begin(func() (err error) {
			now, err = s.WatchLine(ctx, "p/e", seen)
			return err
		})
		blocked(t, "WatchLine before "+what, done)
		do()
		if err := within(t, "WatchLine after "+what, done); err != nil {
			t.Fatalf("WatchLine after %s: %v", what, err)
		}
		if got := valuesOf(now); !slices.Equal(got, want) {
			t.Fatalf("WatchLine after %s: %q, want %q", what, got, want)
		}
		seen = now
	}
	remove := func(m backend.Member) {
		if err := os.Remove(fifo(dir, m)); err != nil {
			t.Fatal(err)
		}
	}
	var a, item backend.Member
	change("a join", func() { a = join(t, other, "p/e", "a") }, "a")
	change("a departure", func() { leave(t, other, a) })
	change("another join", func() { a = join(t, other, "p/e", "a") }, "a")
	change("an item", func() { item = appendItem(t, other, "p/e", "item") }, "a", "item")
	change("the removal of an item's file", func() { remove(item) }, "a")
	change("another item", func() { item = appendItem(t, other, "p/e", "item") }, "a", "item")
	change("the removal of an item", func() {
		if err := s.Remove(ctx, item, a); err != nil {
			t.Fatal(err)
		}
	}, "a")
	change("a pin and a departure", func() {
		if err := other.Pin(ctx, a, backend.Header{}, backend.Absent); err != nil {
			t.Fatal(err)
		}
		join(t, other, "p", "") // elsewhere
		blocked(t, "WatchLine of a line in which one is pinned", done)
		leave(t, other, a)
	})
	change("a third join", func() { a = join(t, other, "p/e", "a") }, "a")
	change("the removal of a member's file", func() { remove(a) })
	change("a fourth join", func() { join(t, other, "p/e", "a") }, "a")
	change("the end of its session", func() { b.Close() })
}

// TestRemoved says that what an operator removes is noticed by its owner and by
// the one behind it, and that numbers go on growing.
func TestRemoved(t *testing.T) {
	tests := []struct {
		name   string
		remove func(dir string, leader backend.Member) error
		all    bool
		gone   error // what those who stand in line are told
	}{
		{"the member's file", func(dir string, m backend.Member) error { return os.Remove(fifo(dir, m)) }, false, backend.ErrNotMember},
		{"the member's file, moved away", func(dir string, m backend.Member) error { return os.Rename(fifo(dir, m), filepath.Join(dir, "@away")) }, false, backend.ErrNotMember},
		{"the election's folder", func(dir string, m backend.Member) error { return os.RemoveAll(filepath.Join(dir, "e")) }, true, backend.ErrNotMember},
		{"the folder above it", func(dir string, m backend.Member) error { return os.RemoveAll(dir) }, true, backend.ErrSessionEnded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "top")
			b1, s1 := open(t, dir)
			_, s2 := open(t, dir)
			leader, second := join(t, s1, "e", ""), join(t, s2, "e", "")
			own := begin(func() error { return s1.Gone(t.Context(), leader) })
			behind := begin(func() error { return s2.Gone(t.Context(), leader) })
			blocked(t, "Gone", own)
			blocked(t, "Gone", behind)
			start := time.Now()
			if err := test.remove(dir, leader); err != nil {
				t.Fatal(err)
			}
			for what, done := range map[string]<-chan error{"the owner's Gone": own, "Gone of the one behind": behind} {
				if err := within(t, what, done); err != nil && (test.gone == backend.ErrNotMember || !errors.Is(err, test.gone)) {
					t.Errorf("%s: %v", what, err)
				}
			}
			t.Logf("noticed after %v", time.Since(start))
			if _, err := s1.Ahead(t.Context(), leader); !errors.Is(err, test.gone) {
				t.Errorf("Ahead of the removed: %v", err)
			}
			p, err := s2.Ahead(t.Context(), second)
			if test.all && !errors.Is(err, test.gone) || !test.all && !p.First {
				t.Errorf("Ahead of the second: %+v, %v", p, err)
			}
			if test.gone == backend.ErrNotMember {
				leave(t, s1, leader)
			} else if s1, err = b1.Session(t.Context()); err != nil {
				t.Fatal(err)
			}
			later := join(t, s1, "e", "")
			if later.Position <= second.Position {
				t.Errorf("position %d after %d", later.Position, second.Position)
			}
			if p := ahead(t, s1, later); p.First != test.all {
				t.Errorf("the one who joined after it: %+v", p)
			}
		})
	}
}

// TestStateRemoved says that a leader whose line's state was removed is told before
// anybody else leads.
func TestStateRemoved(t *testing.T) {
	dir := t.TempDir()
	_, s1 := open(t, dir)
	_, s2 := open(t, dir)
	old := join(t, s1, "e", "")
	own := begin(func() error { return s1.Gone(t.Context(), old) })
	blocked(t, "Gone", own)
	if err := os.Remove(filepath.Join(dir, "e", "@line")); err != nil {
		t.Fatal(err)
	}
	m := join(t, s2, "e", "")
	if err := within(t, "Gone of the member that is listed no more", own); err != nil {
		t.Error(err)
	}
	if p := ahead(t, s2, m); !p.First || p.Token <= old.Position {
		t.Errorf("%+v, want a token above %d", p, old.Position)
	}
}

// TestNoHerd says that one exit in a line of fifty wakes one waiter, and that
// waiters cost one descriptor each and no thread.
func TestNoHerd(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	const n = 50
	var members []backend.Member
	for range n {
		members = append(members, join(t, s, "e", ""))
	}
	threads, fds := count(t, "task"), count(t, "fd")
	watch := calm.Start(t)
	woken := make(chan int, n)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer wg.Wait()
	defer cancel()
	for i := 1; i < n; i++ {
		wg.Go(func() {
			if err := s.Gone(ctx, members[i-1]); err == nil {
				woken <- i
			} else if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	// Each Gone has opened its FIFO, and inotify takes an instance and a wake-up.
	for end := time.Now().Add(time.Minute); count(t, "fd") < fds+n-1 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(100 * time.Millisecond)
	if more := count(t, "task") - threads; more > 8 && !watch.NotJudged(100*time.Millisecond, "%d waiters took %d threads", n-1, more) {
		t.Errorf("%d waiters took %d threads", n-1, more)
	}
	for i := range n - 1 {
		leave(t, s, members[i])
		select {
		case got := <-woken:
			if got != i+1 {
				t.Fatalf("the exit of %d woke %d", i, got)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the exit of %d woke nobody", i)
		}
		if i%10 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if len(woken) > 0 {
			t.Fatalf("the exit of %d woke more than one", i)
		}
	}
}

// TestCancel says that a wait that is cancelled ends at once and leaves neither a
// goroutine nor a descriptor. goleak watches the goroutines of the whole package.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	m := join(t, s, "e", "")
	appendItem(t, s, "e", "")
	line, err := s.Line(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	waits := map[string]func(context.Context) error{
		"Gone":      func(ctx context.Context) error { return s.Gone(ctx, m) },
		"Watch":     func(ctx context.Context) error { _, err := s.Watch(ctx, "r", backend.Absent); return err },
		"WatchLine": func(ctx context.Context) error { _, err := s.WatchLine(ctx, "e", line); return err },
		"WatchLine of an empty line": func(ctx context.Context) error {
			_, err := s.WatchLine(ctx, "vacant", backend.Line{})
			return err
		},
	}
	cause := errors.New("enough")
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			round := func(n int) {
				for i := range n {
					ctx, cancel := context.WithCancelCause(t.Context())
					done := begin(func() error { return wait(ctx) })
					if i%2 == 0 {
						time.Sleep(time.Duration(i) * 20 * time.Microsecond)
					}
					watch := calm.Start(t)
					cancel(cause)
					if err := within(t, name, done); !errors.Is(err, cause) {
						t.Fatalf("%v, want the context's cause", err)
					}
					watch.Within(time.Second, "to return")
				}
			}
			warm, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := wait(warm); !errors.Is(err, context.DeadlineExceeded) { // opens what stays open
				t.Fatal(err)
			}
			fds := count(t, "fd")
			round(100)
			if now := count(t, "fd"); now > fds {
				t.Errorf("%d descriptors before, %d after", fds, now)
			}
		})
	}
}

// count returns the number of threads or descriptors of this process.
func count(t *testing.T, what string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/" + what)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
