// Package lease keeps the deadline of a session: the instant before which the coordinator
// cannot have ended it.
package lease

import (
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
)

// A Lease is a deadline that acknowledged heartbeats move ahead. It is safe for
// concurrent use. The zero Lease has a deadline that has passed.
type Lease struct {
	// Confirmed is called each time that Extend has moved the deadline: with the time since the
	// request was sent, and the time that was left before. It may be nil. Set it before the Lease
	// is used by others.
	Confirmed func(roundTrip, slack time.Duration)

	mu     sync.Mutex
	anchor clock.Instant // when the request was sent from which the deadline counts
	ttl    time.Duration
	held   bool // a member relies on the deadline: once it has passed, it stays passed
	ended  bool // the deadline has passed for good
}

// Extend moves the deadline to ttl after sent, unless it is later already. It reports false,
// and changes nothing, if the lease has ended, or if it is held and its deadline has passed.
func (l *Lease) Extend(sent clock.Instant, ttl time.Duration) bool {
	return l.ExtendFrom(sent, ttl, sent)
}

// ExtendFrom is Extend for a deadline that counts from another instant, anchor, than when the request
// was sent.
func (l *Lease) ExtendFrom(anchor clock.Instant, ttl time.Duration, sent clock.Instant) bool {
	left, moved, ok := l.extend(anchor, ttl)
	if moved && l.Confirmed != nil {
		l.Confirmed(clock.Since(sent), max(0, left))
	}
	return ok
}

func (l *Lease) extend(anchor clock.Instant, ttl time.Duration) (left time.Duration, moved, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left = l.left()
	if l.ended || l.held && left <= 0 {
		return left, false, false
	}
	if ttl-clock.Since(anchor) > left {
		l.anchor, l.ttl, moved = anchor, ttl, true
	}
	return left, moved, true
}

// Cap moves the deadline back to ttl after sent, if it is later than that. It is for a
// coordinator that may have counted with another ttl from sent on.
func (l *Lease) Cap(sent clock.Instant, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ttl-clock.Since(sent) < l.left() {
		l.anchor, l.ttl = sent, ttl
	}
}

// End makes the deadline pass now and for good, and the lease is no longer held. It is for a
// session that ends before its deadline, for another reason than missing heartbeats.
func (l *Lease) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left() > 0 {
		l.anchor, l.ttl = clock.Now(), 0
	}
	l.held, l.ended = false, true
}

// Hold sets whether somebody relies on the deadline from now on. It reports whether the
// deadline is still ahead. After it has passed, Hold(true) does not begin to hold the lease.
func (l *Lease) Hold(held bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ahead := l.left() > 0
	l.held = held && (ahead || l.held)
	return ahead
}

// Held reports whether somebody relies on the deadline, and returns the time until it, which
// is negative if the deadline has passed.
func (l *Lease) Held() (held bool, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held, l.left()
}

// Left returns the time until the deadline, negative if it has passed.
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

// Deadline returns the deadline, converted to the clock of time.Now anew at each call.
func (l *Lease) Deadline() time.Time { return time.Now().Add(l.Left()) }
