package kit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
)

// beats are those who trace the heartbeats of a session. One goroutine tells all of them, as long as there are
// any, so that no f holds up what a driver does.
type beats struct {
	mu  sync.Mutex
	fs  map[*func(backend.Heartbeat)]bool
	new chan backend.Heartbeat // closed when nobody traces any more
}

// heartbeats is how many heartbeats of this process have a number.
var heartbeats atomic.Uint64

// NewHeartbeat returns a heartbeat with a number that no other one of this process has. It is for sessions that do not
// have their life of this package; [Life.Beat] does the same.
func NewHeartbeat(roundTrip, slack time.Duration) backend.Heartbeat {
	return backend.Heartbeat{Number: heartbeats.Add(1), RoundTrip: roundTrip, Slack: slack}
}

// Beat tells those who trace the session's heartbeats of one that has moved the deadline. It does not
// block, and costs next to nothing if nobody traces.
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
