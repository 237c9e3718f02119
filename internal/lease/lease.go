// Package lease keeps the local deadline of a session: the instant before which
// the coordinator cannot have ended it.
package lease

import (
	"sync"
	"time"

	"github.com/succession-dev/succession/internal/clock"
)

// A Lease is a deadline that acknowledged heartbeats push ahead. It is safe for
// concurrent use. The zero Lease has a deadline that has passed.
type Lease struct {
	mu     sync.Mutex
	anchor clock.Instant // when the request that the deadline counts from was sent
	ttl    time.Duration
	held   bool // somebody relies on the deadline: once passed, it stays passed
	ended  bool // it stays passed for good
}

// Extend moves the deadline to ttl after sent, unless that is earlier than what
// it is. While the lease is held, a deadline that has passed is never revived, and
// Extend reports false.
func (l *Lease) Extend(sent clock.Instant, ttl time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.left()
	if l.ended || l.held && left <= 0 {
		return false
	}
	if ttl-clock.Since(sent) > left {
		l.anchor, l.ttl = sent, ttl
	}
	return true
}

// Cap moves the deadline back to ttl after sent, if it is later than that: from
// sent on the coordinator may have counted with another ttl.
func (l *Lease) Cap(sent clock.Instant, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ttl-clock.Since(sent) < l.left() {
		l.anchor, l.ttl = sent, ttl
	}
}

// End has the deadline pass now, for good, and lets go of it: the session ends before the
// coordinator would have ended it, and not for want of heartbeats.
func (l *Lease) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left() > 0 {
		l.anchor, l.ttl = clock.Now(), 0
	}
	l.held, l.ended = false, true
}

// Hold says whether somebody relies on the deadline from now on. It reports
// whether the deadline is still ahead.
func (l *Lease) Hold(held bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ahead := l.left() > 0
	l.held = held && (ahead || l.held)
	return ahead
}

// Held reports whether somebody relies on the deadline, and the time until it,
// negative when it has passed.
func (l *Lease) Held() (held bool, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held, l.left()
}

// Left returns the time until the deadline, negative when it has passed.
func (l *Lease) Left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left()
}

func (l *Lease) left() time.Duration {
	if l.anchor.IsZero() {
		return -1
	}
	return l.ttl - clock.Since(l.anchor)
}

// Deadline returns the deadline on the clock of time.Now at this moment.
func (l *Lease) Deadline() time.Time { return time.Now().Add(l.Left()) }
