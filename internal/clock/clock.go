// Package clock measures elapsed time for deadlines, also over the suspension of
// the machine, which Go's monotonic clock does not count.
package clock

import (
	"sync/atomic"
	"time"
)

// An Instant is a point in time for measuring what has elapsed since.
type Instant struct {
	mono      time.Time
	boot      time.Duration // since boot, time suspended included; 0 where unknown
	suspended time.Duration // what Suspend has added up to
}

// suspended is what Suspend has added up to, in nanoseconds.
var suspended atomic.Int64

// Suspend has every deadline of this process see d more time elapse, as if the machine
// had been suspended for so long. What package time measures stands still, and so do its
// timers; a [Timer] fires as it does at the end of a suspension. The coordinator's clock as
// well as other processes are not touched. It is for tests of what a suspension does, takes
// effect at once, and is never undone. It does not block and is safe for concurrent use.
func Suspend(d time.Duration) {
	suspended.Add(int64(d))
	ringAnew()
}

// Now returns the present instant.
func Now() Instant {
	return Instant{mono: time.Now(), boot: sinceBoot(), suspended: time.Duration(suspended.Load())}
}

// Since returns the time elapsed since i: the larger of what the monotonic clock
// and, where there is one, the clock that counts suspension have measured.
func Since(i Instant) time.Duration { return Now().Sub(i) }

// Sub returns the time elapsed from j to i.
func (i Instant) Sub(j Instant) time.Duration {
	d := i.mono.Sub(j.mono)
	if i.boot != 0 && j.boot != 0 {
		d = max(d, i.boot-j.boot)
	}
	return d + i.suspended - j.suspended
}

// IsZero reports whether i is the zero Instant.
func (i Instant) IsZero() bool { return i.mono.IsZero() }

// Before reports whether i is earlier than j.
func (i Instant) Before(j Instant) bool { return i.mono.Before(j.mono) }
