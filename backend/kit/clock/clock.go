// Package clock measures elapsed time for deadlines. It counts the time in which the machine
// is suspended, which Go's monotonic clock does not, if the system has a clock that does.
package clock

import (
	"sync/atomic"
	"time"
)

// An Instant is a point in time, from which elapsed time can be measured.
type Instant struct {
	mono      time.Time
	boot      time.Duration // since boot, including suspensions; 0 if unknown
	suspended time.Duration // sum of the calls of Suspend until then
}

// suspended is the sum of all calls of Suspend, in nanoseconds.
var suspended atomic.Int64

// Suspend makes all deadlines of this process see d more time elapse, as if the machine
// had been suspended for d. Package time and its timers do not notice, and a [Timer] fires as
// it does at the end of a suspension. Other processes, such as the coordinator, are not
// touched. Suspend is for tests. It takes effect at once and is never undone. Time does not go back: if d is not positive, Suspend
// does nothing. It does not block and is safe for concurrent use.
func Suspend(d time.Duration) {
	if d <= 0 {
		return
	}
	suspended.Add(int64(d))
	ringAnew()
}

// Now returns the present instant.
func Now() Instant {
	return Instant{mono: time.Now(), boot: sinceBoot(), suspended: time.Duration(suspended.Load())}
}

// Since returns the time elapsed since i: the larger of the times that the monotonic clock
// and, if there is one, the clock that counts suspensions have measured.
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
