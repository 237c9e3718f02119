//go:build linux

package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/local"
)

func watchPlace(t *testing.T, s backend.Session, m backend.Member, after backend.Place) (now *backend.Place, done <-chan error) {
	t.Helper()
	now = &after
	done = begin(func() error { return s.WatchPlace(t.Context(), m, now) })
	blocked(t, "WatchPlace", done)
	return now, done
}

// TestStoppedJoin says that nobody on the way to leadership waits for somebody who is stopped while
// it joins, and that whoever writes does, also with the locks of earlier versions.
func TestStoppedJoin(t *testing.T) {
	dir := t.TempDir()
	joining, _ := open(t, dir)
	_, s := open(t, dir)
	_, hasty := openWith(t, dir, &local.Options{LockTimeout: 200 * time.Millisecond})
	first, second, third := join(t, s, "e", ""), join(t, s, "e", ""), join(t, s, "e", "")
	now, done := watchPlace(t, s, second, ahead(t, s, second))
	goOn, err := local.StopInJoin(t.Context(), joining, "e")
	if err != nil {
		t.Fatal(err)
	}
	leave(t, s, first)
	if err := within(t, "WatchPlace", done); err != nil || !now.First {
		t.Errorf("WatchPlace while somebody joins: %+v, %v", now, err)
	}
	leave(t, s, second)
	if p := ahead(t, s, third); !p.First {
		t.Errorf("Ahead while somebody joins: %+v", p)
	}
	if l, err := s.Line(t.Context(), "e"); err != nil || len(l.Members) != 1 {
		t.Errorf("Line while somebody joins: %+v, %v", l, err)
	}
	if _, err := hasty.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Join while somebody else joins: %v, want ErrUnavailable", err)
	}
	if _, err := hasty.Put(t.Context(), "r", nil, &backend.If{Member: third}); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("a guarded Put while somebody joins: %v, want ErrUnavailable", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "@lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	earlier := unix.Flock_t{Type: unix.F_WRLCK, Start: local.LockByte("e"), Len: 1}
	if err := unix.FcntlFlock(lock.Fd(), unix.F_OFD_SETLK, &earlier); err != unix.EAGAIN {
		t.Errorf("an earlier version locks the name while somebody joins: %v, want EAGAIN", err)
	}
	goOn()
	if err := unix.FcntlFlock(lock.Fd(), unix.F_OFD_SETLK, &earlier); err != nil {
		t.Fatal(err)
	}
	if _, err := hasty.Join(t.Context(), "e", "", ""); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("Join while an earlier version writes: %v, want ErrUnavailable", err)
	}
	lock.Close()
	join(t, s, "e", "")
}

// TestJoinTogether says that those who join a line while it is locked join with one write, each with
// its own position, and that one who gives up meanwhile does not.
func TestJoinTogether(t *testing.T) {
	dir := t.TempDir()
	b, s := open(t, dir)
	first := join(t, s, "e", "first")
	goOn, err := local.StopInJoin(t.Context(), b, "e")
	if err != nil {
		t.Fatal(err)
	}
	const n = 100
	var mu sync.Mutex
	var joined []backend.Member
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			m, err := s.Join(t.Context(), "e", fmt.Sprint(i), "")
			if err != nil || m.Value != fmt.Sprint(i) {
				t.Error(m, err)
			}
			mu.Lock()
			defer mu.Unlock()
			joined = append(joined, m.Member)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := begin(func() error { _, err := s.Join(ctx, "e", "gave up", ""); return err })
	for local.Joining(b, "e") < n+1 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := within(t, "Join", gaveUp); !errors.Is(err, context.Canceled) {
		t.Errorf("Join of one who gives up: %v", err)
	}
	goOn()
	all.Wait()
	slices.SortFunc(joined, func(a, b backend.Member) int { return int(a.Position) - int(b.Position) })
	if first, last := joined[0].Position, joined[n-1].Position; last-first != n-1 {
		t.Errorf("positions from %d to %d of %d who join together", first, last, n)
	}
	l, err := s.Line(t.Context(), "e")
	if err != nil || !slices.Equal(l.Members, append([]backend.Member{first}, joined...)) {
		t.Errorf("line %+v, %v", l, err)
	}
	if got := local.Joining(b, "e"); got != 0 {
		t.Errorf("%d still wait to join", got)
	}
}

// TestTurns says that one who joins again and again does not keep another one waiting.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	_, other := open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	churned := make(chan uint64, 1<<16)
	churn := begin(func() error {
		for {
			m, err := other.Join(ctx, "e", "", "")
			if err != nil {
				return err
			}
			churned <- m.Position
			if err := other.Leave(ctx, m.Member); err != nil {
				return err
			}
		}
	})
	// How often it does meanwhile is a matter of time, as a join takes a tenth of a millisecond, and any thread may get no processor for some:
	// so the median of many counts. It is about once.
	var meanwhile []int
	for range 100 {
		<-churned
		before := len(churned)
		join(t, s, "e", "")
		meanwhile = append(meanwhile, len(churned)-before)
	}
	slices.Sort(meanwhile)
	if meanwhile[len(meanwhile)/2] > 2 {
		t.Errorf("while one has joined once, another one has joined so often: %v", meanwhile)
	}
	cancel()
	if err := within(t, "Join", churn); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestHead says that the first in line marks its FIFO, so that the next one need not test the locks
// of those in front of it, and that nobody else does: not who is first together with others.
func TestHead(t *testing.T) {
	dir := t.TempDir()
	_, s := open(t, dir)
	share := func() backend.Member {
		m, err := s.JoinShared(t.Context(), "e", "", "")
		if err != nil {
			t.Fatal(err)
		}
		return m.Member
	}
	marked := func(m backend.Member, want bool) {
		t.Helper()
		file, err := os.OpenFile(fifo(dir, m), os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if got := local.IsHead(file); got != want {
			t.Errorf("member %s is marked as first: %t, want %t", m.Key, got, want)
		}
	}
	one, two := join(t, s, "e", ""), join(t, s, "e", "")
	readers := []backend.Member{share(), share()}
	last := join(t, s, "e", "")
	ahead(t, s, one)
	ahead(t, s, two)
	marked(one, true)
	marked(two, false)
	now, done := watchPlace(t, s, two, ahead(t, s, two))
	leave(t, s, one)
	if err := within(t, "WatchPlace", done); err != nil || !now.First {
		t.Fatalf("WatchPlace: %+v, %v", now, err)
	}
	marked(two, true)
	now, done = watchPlace(t, s, readers[1], ahead(t, s, readers[1]))
	leave(t, s, two)
	if err := within(t, "WatchPlace", done); err != nil || !now.First {
		t.Fatalf("WatchPlace of one who shares: %+v, %v", now, err)
	}
	marked(readers[1], false) // the other one stands in front of it
	now, done = watchPlace(t, s, last, ahead(t, s, last))
	leave(t, s, readers[1])
	if err := within(t, "WatchPlace", done); err != nil || now.Ahead != readers[0] {
		t.Fatalf("WatchPlace of one behind two who share: %+v, %v; want it behind the other", now, err)
	}
	now, done = watchPlace(t, s, last, *now)
	leave(t, s, readers[0])
	if err := within(t, "WatchPlace", done); err != nil || !now.First {
		t.Fatalf("WatchPlace: %+v, %v", now, err)
	}
	marked(last, true)
}
