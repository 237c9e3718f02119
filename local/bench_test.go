//go:build linux

package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/recipes/lock"
)

func benchSession(b *testing.B) backend.Session {
	l, err := local.New(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	s, err := l.Session(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// A benchLine is a line of candidates, each of which waits in a goroutine of its own.
type benchLine struct {
	b   *testing.B
	s   backend.Session
	ctx context.Context
	led chan led
}

// led says that a candidate has become first.
type led struct {
	m  backend.Member
	at time.Time
}

func newBenchLine(b *testing.B, n int) *benchLine {
	l := &benchLine{b, benchSession(b), b.Context(), make(chan led)}
	var joined sync.WaitGroup
	for range n {
		joined.Go(l.join)
	}
	joined.Wait()
	return l
}

// join adds a candidate at the end of the line.
func (l *benchLine) join() {
	m, err := l.s.Join(l.ctx, "e", "host:8080", "")
	if err != nil {
		l.b.Error(err)
		return
	}
	go func() {
		p, err := l.s.Ahead(l.ctx, m.Member)
		for err == nil && !p.First {
			err = l.s.WatchPlace(l.ctx, m.Member, &p)
		}
		at := time.Now()
		if err != nil {
			if l.ctx.Err() == nil && l.s.Err() == nil {
				l.b.Error(err)
			}
			return
		}
		select {
		case l.led <- led{m.Member, at}:
		case <-l.ctx.Done():
		}
	}()
}

// BenchmarkHandover reports the time from Leave until the next one leads, while nobody joins and
// while the leader that has left joins again at once. Beside it stands the floor in the same run:
// the time from the release of a bare flock until a goroutine that is blocked in flock has it.
func BenchmarkHandover(b *testing.B) {
	for _, n := range []int{5, 500, 5000} {
		for _, again := range []bool{false, true} {
			b.Run(fmt.Sprintf("n=%d/again=%t", n, again), func(b *testing.B) {
				l := newBenchLine(b, n)
				floor := newFlock(b)
				leader := <-l.led
				var took, bare []time.Duration
				for b.Loop() {
					time.Sleep(2 * time.Millisecond) // until the next one waits
					bare = append(bare, floor.pass())
					left := time.Now()
					if err := l.s.Leave(l.ctx, leader.m); err != nil {
						b.Fatal(err)
					}
					if again {
						l.join()
					}
					leader = <-l.led
					took = append(took, leader.at.Sub(left))
					if !again {
						l.join()
					}
				}
				b.ReportMetric(quantile(took, 50), "p50-µs")
				b.ReportMetric(quantile(took, 90), "p90-µs")
				b.ReportMetric(quantile(bare, 50), "floor-p50-µs")
			})
		}
	}
}

// quantile returns a quantile in microseconds.
func quantile(d []time.Duration, percent int) float64 {
	slices.Sort(d)
	return float64(d[(len(d)-1)*percent/100].Nanoseconds()) / 1000
}

// A flock is a lock of the kernel that two descriptors take in turn.
type flock struct {
	b       *testing.B
	holds   int // the descriptor that has the lock
	waits   int
	blocked chan struct{}
	has     chan time.Time
}

func newFlock(b *testing.B) *flock {
	f := &flock{b: b, blocked: make(chan struct{}), has: make(chan time.Time)}
	path := filepath.Join(b.TempDir(), "lock")
	for _, fd := range []*int{&f.holds, &f.waits} {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { file.Close() })
		*fd = int(file.Fd())
	}
	if err := unix.Flock(f.holds, unix.LOCK_EX); err != nil {
		b.Fatal(err)
	}
	return f
}

// pass hands the lock to a goroutine that waits for it, and returns how long that took.
func (f *flock) pass() time.Duration {
	fd := f.waits
	go func() {
		f.blocked <- struct{}{}
		if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
			f.b.Error(err)
		}
		f.has <- time.Now()
	}()
	<-f.blocked
	time.Sleep(time.Millisecond) // until it is blocked in the kernel
	released := time.Now()
	if err := unix.Flock(f.holds, unix.LOCK_UN); err != nil {
		f.b.Fatal(err)
	}
	at := <-f.has
	f.holds, f.waits = f.waits, f.holds
	return at.Sub(released)
}

// BenchmarkWaiter reports the memory of one of a thousand who wait in one line.
func BenchmarkWaiter(b *testing.B) {
	const n = 1000
	for b.Loop() {
		before := inUse()
		l := newBenchLine(b, n)
		<-l.led
		time.Sleep(100 * time.Millisecond) // until all wait
		b.ReportMetric(float64(inUse()-before)/n, "B/waiter")
		if err := l.s.Close(l.ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// inUse returns the bytes of this process that are in use.
func inUse() uint64 {
	var m runtime.MemStats
	for range 3 { // the stacks of goroutines that are blocked shrink by half each time
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// BenchmarkJoin is the time of joining at the end of a line, and of leaving it.
func BenchmarkJoin(b *testing.B) {
	for _, n := range []int{5, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := benchSession(b)
			for range n {
				if _, err := s.Join(b.Context(), "e", "host:8080", ""); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				m, err := s.Join(b.Context(), "e", "", "")
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Leave(b.Context(), m.Member); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLock is the time of taking a lock that nobody else wants, and of releasing it. Beside it stands
// the floor in the same run: to make a FIFO, to lock it, to unlock it and to remove it.
func BenchmarkLock(b *testing.B) {
	l, err := local.New(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	mutex := lock.NewMutex(l, "a/lock", nil)
	path := filepath.Join(b.TempDir(), "fifo")
	var took, bare []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := bareLock(path); err != nil {
			b.Fatal(err)
		}
		bare = append(bare, time.Since(start))
		start = time.Now()
		held, err := mutex.Lock(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := held.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	b.ReportMetric(quantile(took, 50), "p50-µs")
	b.ReportMetric(quantile(took, 99), "p99-µs")
	b.ReportMetric(quantile(bare, 50), "floor-p50-µs")
}

// bareLock makes a FIFO at the path, locks it, and removes it.
func bareLock(path string) error {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Flock(fd, unix.LOCK_EX), unix.Close(fd), unix.Unlink(path))
}

// BenchmarkAhead is the time of asking who is ahead of the last in line.
func BenchmarkAhead(b *testing.B) {
	for _, n := range []int{5, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := benchSession(b)
			var m backend.Member
			for range n {
				j, err := s.Join(b.Context(), "e", "host:8080", "")
				if err != nil {
					b.Fatal(err)
				}
				m = j.Member
			}
			for b.Loop() {
				if _, err := s.Ahead(b.Context(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
