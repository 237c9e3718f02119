// Package clock measures elapsed time for deadlines, also over the suspension of
// the machine, which Go's monotonic clock does not count.
package clock

import "time"

// An Instant is a point in time for measuring what has elapsed since.
type Instant struct {
	mono time.Time
	boot time.Duration // since boot, time suspended included; 0 where unknown
}

// Now returns the present instant.
func Now() Instant { return Instant{mono: time.Now(), boot: sinceBoot()} }

// Since returns the time elapsed since i: the larger of what the monotonic clock
// and, where there is one, the clock that counts suspension have measured.
func Since(i Instant) time.Duration { return Now().Sub(i) }

// Sub returns the time elapsed from j to i.
func (i Instant) Sub(j Instant) time.Duration {
	d := i.mono.Sub(j.mono)
	if i.boot != 0 && j.boot != 0 {
		d = max(d, i.boot-j.boot)
	}
	return d
}

// IsZero reports whether i is the zero Instant.
func (i Instant) IsZero() bool { return i.mono.IsZero() }

// Before reports whether i is earlier than j.
func (i Instant) Before(j Instant) bool { return i.mono.Before(j.mono) }
