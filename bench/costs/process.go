package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// cpu returns the processor time that the processes have used, by proc(5).
func cpu(processes ...*coordtest.Peer) (sum time.Duration, err error) {
	for _, p := range processes {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		if err != nil {
			return 0, err
		}
		// What follows the name, in parentheses, begins with the third field.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		var user, system time.Duration
		if _, err := fmt.Sscan(f[11]+" "+f[12], &user, &system); err != nil {
			return 0, err
		}
		sum += (user + system) * (time.Second / 100) // USER_HZ is 100
	}
	return sum, nil
}

// A weight is what a process has at rest.
type weight struct{ bytes, goroutines int }

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
		if w.goroutines == last.goroutines && max(w.bytes, last.bytes)-min(w.bytes, last.bytes) < w.bytes/200 {
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
			n, _ := fmt.Sscanf(e.What, "weighs %d %d", &w.bytes, &w.goroutines)
			return n == 2
		})
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil {
		return w, err
	}
	var size int
	_, err = fmt.Sscan(string(b), &size, &w.bytes)
	w.bytes *= os.Getpagesize()
	return w, err
}
