package kit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// reads are the reads of lines, each of which takes a second and returns its number.
type reads struct {
	mu    sync.Mutex
	n     int
	lines map[string]int // how often each was read
}

func (r *reads) read(line string) (int, error) {
	r.mu.Lock()
	r.n++
	n := r.n
	r.lines[line]++
	r.mu.Unlock()
	time.Sleep(time.Second)
	if line == "broken" {
		return n, errRan
	}
	return n, nil
}

// A look is what Enter has returned.
type look struct {
	view  int
	alone bool
	err   error
	after time.Duration
}

// A few members look alone. The others share a view, which is read after all of them have come, and those who come
// while it is read share the next one.
func TestLookout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(0, 0)
		defer c.sessions.Close()
		s := open(t, c).Session.(*session)
		r := &reads{lines: make(map[string]int)}
		l := &kit.Lookout[int]{Life: s.Life, Read: r.read}
		began := time.Now()
		var mu sync.Mutex
		var looking sync.WaitGroup
		looks := make(map[string][]look)
		come := func(ctx context.Context, line string, n int) {
			for range n {
				looking.Go(func() {
					v, alone, err := l.Enter(ctx, line)
					mu.Lock()
					defer mu.Unlock()
					looks[line] = append(looks[line], look{v, alone, err, time.Since(began)})
				})
			}
			synctest.Wait()
		}
		count := func(line string, want look) (n int) {
			mu.Lock()
			defer mu.Unlock()
			for _, got := range looks[line] {
				if got.view == want.view && got.alone == want.alone && errors.Is(got.err, want.err) && got.after == want.after {
					n++
				}
			}
			return n
		}
		expect := func(line string, n int, want look) {
			t.Helper()
			if got := count(line, want); got != n {
				t.Errorf("%d of %s have seen %+v, want %d; all: %+v", got, line, want, n, looks[line])
			}
		}
		come(t.Context(), "jobs", 8)
		come(t.Context(), "other", 1) // another line
		expect("jobs", 8, look{alone: true})
		expect("other", 1, look{alone: true})
		come(t.Context(), "jobs", 1)
		if r.n != 1 {
			t.Fatalf("%d reads have begun for the ninth, want one", r.n)
		}
		come(t.Context(), "jobs", 20) // these came after that read had begun
		gone, cancel := context.WithCancelCause(t.Context())
		come(gone, "jobs", 1)
		cancel(errRan)
		synctest.Wait()
		expect("jobs", 1, look{err: errRan})
		l.Leave("jobs") // there is room for one to look alone, but a view is being read
		come(t.Context(), "jobs", 1)
		looking.Wait()
		expect("jobs", 1, look{view: 1, after: time.Second})
		expect("jobs", 21, look{view: 2, after: 2 * time.Second})

		// Nobody waits for a view any more, so the next one looks alone.
		come(t.Context(), "jobs", 1)
		expect("jobs", 1, look{alone: true, after: 2 * time.Second})
		come(t.Context(), "jobs", 1)
		looking.Wait()
		expect("jobs", 1, look{view: 3, after: 3 * time.Second})

		// Where all have left, it is as at first.
		for range 8 {
			l.Leave("jobs")
		}
		come(t.Context(), "jobs", 8)
		expect("jobs", 8, look{alone: true, after: 3 * time.Second})

		for range 9 {
			come(t.Context(), "broken", 1)
		}
		looking.Wait()
		expect("broken", 1, look{view: 4, err: errRan, after: 4 * time.Second})
		if got, want := fmt.Sprint(r.lines), "map[broken:1 jobs:3]"; got != want {
			t.Errorf("lines were read %s, want %s", got, want)
		}

		// Who does not wait for a view is told whether there is room to look alone.
		for i := range 9 {
			if alone := l.TryAlone("third"); alone != (i < 8) {
				t.Errorf("the %d. to look is told that it may look alone: %t", i+1, alone)
			}
		}
		l.Leave("third")
		if !l.TryAlone("third") {
			t.Error("one has left, and there is no room")
		}
		come(t.Context(), "third", 1)
		l.Leave("third")
		if l.TryAlone("third") {
			t.Error("one looks alone while a view is read for others")
		}
		looking.Wait()
		expect("third", 1, look{view: 5, after: 5 * time.Second})

		// A session that has ended reads nothing more.
		s.End(context.Canceled)
		come(t.Context(), "jobs", 1)
		looking.Wait()
		expect("jobs", 1, look{err: backend.ErrSessionEnded, after: 5 * time.Second})
	})
}
