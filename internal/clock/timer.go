package clock

import (
	"sync"
	"time"
)

// A Timer fires when a time has elapsed since an instant. On Linux it counts suspensions of
// the machine, and those of [Suspend]. A timer of package time stands still meanwhile, and
// fires late by as much. From the first Reset until Stop, a Timer needs a file descriptor and
// a goroutine. It is for one goroutine at a time.
type Timer struct {
	// C receives a value when the timer fires. The value may be left from a time that was
	// set before, so the receiver must look at the clock.
	C <-chan struct{}

	c     chan struct{}
	plain *time.Timer // used if there can be no alarm
	alarm *alarm

	mu    sync.Mutex // guards the fields below, which Suspend reads
	since Instant    // with d, the arguments of the last Reset
	d     time.Duration
}

// alarms holds the timers that have an alarm.
var alarms = struct {
	sync.Mutex
	of map[*Timer]bool
}{of: make(map[*Timer]bool)}

// NewTimer returns a timer that is not set. The caller must call Stop.
func NewTimer() *Timer {
	c := make(chan struct{}, 1)
	return &Timer{C: c, c: c}
}

// Reset makes the timer fire when d has elapsed since the instant, instead of at the time that
// was set before. Callers must take the instant before they compute d, so that a suspension in
// between counts. Reset does not block.
func (t *Timer) Reset(since Instant, d time.Duration) {
	if t.alarm == nil && t.plain == nil {
		if t.alarm = newAlarm(t.fire); t.alarm == nil {
			t.plain = time.AfterFunc(d, t.fire)
			return
		}
		alarms.Lock()
		alarms.of[t] = true
		alarms.Unlock()
	}
	if t.plain != nil {
		t.plain.Reset(d)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.d = since, d
	t.set()
}

// set sets the alarm. The caller holds mu.
func (t *Timer) set() {
	already := time.Duration(suspended.Load()) - t.since.suspended
	t.alarm.ringAt(t.since.boot + t.d - already)
}

// Exact reports whether the timer counts suspensions. It is for after the first Reset.
func (t *Timer) Exact() bool { return t.alarm != nil }

// Stop ends the timer, and releases what it holds. It does not block.
func (t *Timer) Stop() {
	if t.plain != nil {
		t.plain.Stop()
	}
	if t.alarm != nil {
		alarms.Lock()
		delete(alarms.of, t)
		alarms.Unlock()
		t.alarm.stop()
	}
}

func (t *Timer) fire() {
	select {
	case t.c <- struct{}{}:
	default:
	}
}

// ringAnew sets all alarms again after [Suspend], of which the kernel knows nothing.
func ringAnew() {
	alarms.Lock()
	defer alarms.Unlock()
	for t := range alarms.of {
		t.mu.Lock()
		t.set()
		t.mu.Unlock()
	}
}
