//go:build linux && !race

package local_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/elect"
)

// TestMemoryOfAWaiter says that a candidate that waits takes at most 4 KiB, and one goroutine, its
// caller's, with a stack of at most 16 KiB. It counts what n more of them take in a line that has n,
// so that what they share does not count. It is measured without the race detector, which takes more.
func TestMemoryOfAWaiter(t *testing.T) {
	const n = 300
	b, _ := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	leader, err := elect.New(b, "e", nil).Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var waiters sync.WaitGroup
	defer waiters.Wait()
	defer leader.Resign(ctx)
	defer cancel()
	occupied := func() (heap, stacks, goroutines int) {
		t.Helper()
		fds := count(t, "fd")
		for range n {
			waiters.Go(func() {
				if term, err := elect.New(b, "e", nil).Campaign(ctx); err == nil {
					t.Error("a candidate leads beside another")
					term.Resign(ctx)
				}
			})
		}
		for end := time.Now().Add(time.Minute); count(t, "fd") < fds+2*n; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d descriptors: not all wait; each has two, beside %d of others", count(t, "fd"), fds)
			}
		}
		time.Sleep(100 * time.Millisecond) // until the last ones read, and what ran beside has ended
		inUse()                            // collects garbage
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc), int(m.StackInuse), runtime.NumGoroutine()
	}
	heap, stacks, goroutines := occupied()
	heapTwice, stacksTwice, goroutinesTwice := occupied()
	per := (heapTwice - heap) / n
	stack := (stacksTwice - stacks) / n
	t.Logf("a waiter takes %d bytes, and %.2f goroutines with %d bytes", per, float64(goroutinesTwice-goroutines)/n, stack)
	if per > 4<<10 {
		t.Errorf("a waiter takes %d bytes; want at most 4 KiB", per)
	}
	if stack > 17<<10 { // those of others may have grown meanwhile
		t.Errorf("the stack of a waiter takes %d bytes; want at most 16 KiB", stack)
	}
	if more := goroutinesTwice - goroutines; more > n {
		t.Errorf("%d waiters take %d goroutines; want one each", n, more)
	}
}
