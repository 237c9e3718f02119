package kit

import (
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// beats are those who trace the heartbeats of a session.
type beats struct {
	mu  sync.Mutex
	fs  map[*func(backend.Heartbeat)]bool
	new chan backend.Heartbeat // nil until somebody traces
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
	case l.beats.new <- backend.Heartbeat{RoundTrip: roundTrip, Slack: slack}:
	default: // somebody is slow
	}
}

// TraceHeartbeats implements [backend.HeartbeatTracer]. The first call starts a goroutine, so that no f
// holds up what a driver does.
func (l *Life) TraceHeartbeats(f func(backend.Heartbeat)) (stop func()) {
	b := &l.beats
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.new == nil {
		b.fs, b.new = make(map[*func(backend.Heartbeat)]bool), make(chan backend.Heartbeat, 16)
		l.Go(l.tellBeats)
	}
	key := &f
	b.fs[key] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.fs, key)
	}
}

func (l *Life) tellBeats() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case h := <-l.beats.new:
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
