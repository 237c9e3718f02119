package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// cpu returns the processor time that the processes have used, and children of theirs that have ended, by proc(5).
func cpu(pids ...int) (sum time.Duration, err error) {
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		// What follows the name, in parentheses, begins with the third field.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		for _, ticks := range f[11:15] {
			n, err := strconv.Atoi(ticks)
			if err != nil {
				return 0, err
			}
			sum += time.Duration(n) * (time.Second / 100) // USER_HZ is 100
		}
	}
	return sum, nil
}

// resident returns how much of the processes is in memory, by proc(5). What they share is shared among those who do.
func resident(pids ...int) (sum int, err error) {
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		_, line, _ := strings.Cut(string(b), "\nPss:")
		var kib int
		if _, err := fmt.Sscan(line, &kib); err != nil {
			return 0, err
		}
		sum += kib << 10
	}
	return sum, nil
}

// used returns the processor time and the memory of the processes that serve a place.
func (p *place) used() (time.Duration, int, error) {
	var all []int
	for _, s := range p.servers {
		pids, err := s.PIDs()
		if err != nil {
			return 0, 0, err
		}
		all = append(all, pids...)
	}
	used, err := cpu(all...)
	if err != nil {
		return 0, 0, err
	}
	bytes, err := resident(all...)
	return used, bytes, err
}

// pids returns the processes of candidates.
func pids(processes []*coordtest.Peer) (all []int) {
	for _, p := range processes {
		all = append(all, p.PID())
	}
	return all
}

// A weight is what a process has at rest. The bytes of a peer's are all its heap.
type weight struct{ heap, stacks, goroutines int }

func (w weight) bytes() int { return w.heap + w.stacks }

// weigh returns what the process has as soon as that has stopped to change.
func (q *line) weigh(ctx context.Context, p *coordtest.Peer) (weight, error) {
	return steady(ctx, func() (weight, error) { return q.weighOnce(ctx, p) })
}

// steady returns what weigh returns as soon as that has not changed for a second: nothing tells that
// all watch who wait, and on a busy machine nothing may happen for a while.
func steady(ctx context.Context, weigh func() (weight, error)) (w weight, err error) {
	last := weight{}
	for same := 0; same < 5; {
		if w, err = weigh(); err != nil {
			return w, err
		}
		if w.goroutines == last.goroutines && max(w.bytes(), last.bytes())-min(w.bytes(), last.bytes()) < w.bytes()/200 {
			same++
		} else {
			last, same = w, 0
		}
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return w, err
		}
	}
	return w, nil
}

// weighOnce asks the process. Of one of a peer it takes how much is in memory, by proc(5).
func (q *line) weighOnce(ctx context.Context, p *coordtest.Peer) (w weight, err error) {
	if q.library.Peer == "" {
		if err := p.Send("weigh"); err != nil {
			return w, err
		}
		return w, q.await(ctx, func(e coordtest.PeerEvent) bool {
			n, _ := fmt.Sscanf(e.What, "weighs %d %d %d", &w.heap, &w.stacks, &w.goroutines)
			return n == 3
		})
	}
	w.heap, err = resident(p.PID())
	return w, err
}
