package kit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
)

// beats are the funcs that trace the heartbeats of a session. As long as there are any, one
// goroutine calls all of them, so that none of them holds up the driver.
type beats struct {
	mu  sync.Mutex
	fs  map[*func(backend.Heartbeat)]bool
	new chan backend.Heartbeat // closed when no func is left
}

// heartbeats is the newest number that a heartbeat of this process has.
var heartbeats atomic.Uint64

// NewHeartbeat returns a heartbeat with a number that no other heartbeat of this process has. It is
// for sessions without a [Life]; [Life.Beat] does the same.
func NewHeartbeat(roundTrip, slack time.Duration) backend.Heartbeat {
	return backend.Heartbeat{Number: heartbeats.Add(1), RoundTrip: roundTrip, Slack: slack}
}

// Beat tells all callers that trace the session's heartbeats of one that has moved the deadline. It
// does not block, and costs next to nothing if nobody traces.
func (l *Life) Beat(roundTrip, slack time.Duration) {
	l.beats.mu.Lock()
	defer l.beats.mu.Unlock()
	if len(l.beats.fs) == 0 {
		return
	}
	select {
	case l.beats.new <- NewHeartbeat(roundTrip, slack):
	default: // somebody is slow
	}
}

// TraceHeartbeats implements [backend.Session].
func (l *Life) TraceHeartbeats(f func(backend.Heartbeat)) (stop func()) {
	b := &l.beats
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.fs) == 0 {
		b.fs, b.new = make(map[*func(backend.Heartbeat)]bool), make(chan backend.Heartbeat, 16)
		beats := b.new
		l.Go(func() { l.tellBeats(beats) })
	}
	b.fs[&f] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.fs[&f] {
			return
		}
		if delete(b.fs, &f); len(b.fs) == 0 {
			close(b.new)
		}
	}
}

func (l *Life) tellBeats(beats <-chan backend.Heartbeat) {
	for {
		select {
		case <-l.ctx.Done():
			return
		case h, ok := <-beats:
			if !ok {
				return
			}
			l.beats.mu.Lock()
			fs := make([]func(backend.Heartbeat), 0, len(l.beats.fs))
			for f := range l.beats.fs {
				fs = append(fs, *f)
			}
			l.beats.mu.Unlock()
			for _, f := range fs {
				f(h)
			}
		}
	}
}
