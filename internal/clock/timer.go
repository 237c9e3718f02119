package clock

import (
	"sync"
	"time"
)

// A Timer fires when a time has elapsed since an instant. A suspension of the machine counts
// where that runs Linux, and one of [Suspend] with it. A timer of package time stands still
// meanwhile, and fires late by as much. It costs a file and a goroutine from the first Reset
// until Stop. It is for one goroutine at a time.
type Timer struct {
	// C gets a value when the timer fires. One of an earlier time may still lie there, so
	// whoever gets it compares clocks.
	C <-chan struct{}

	c     chan struct{}
	plain *time.Timer // instead of the alarm where there can be none
	alarm *alarm

	mu    sync.Mutex // of what follows, which Suspend reads
	since Instant    // of the last Reset, as is d
	d     time.Duration
}

// alarms are the timers that have one.
var alarms struct {
	sync.Mutex
	of map[*Timer]bool
}

// NewTimer returns a timer that is not set. The caller must call Stop.
func NewTimer() *Timer {
	c := make(chan struct{}, 1)
	return &Timer{C: c, c: c}
}

// Reset has the timer fire when d has elapsed since the instant, and not at the time that it
// was set for. Whoever works out d takes the instant before: a suspension in between then
// counts. It does not block.
func (t *Timer) Reset(since Instant, d time.Duration) {
	if t.alarm == nil && t.plain == nil {
		if t.alarm = newAlarm(t.fire); t.alarm == nil {
			t.plain = time.AfterFunc(d, t.fire)
			return
		}
		alarms.Lock()
		if alarms.of == nil {
			alarms.of = make(map[*Timer]bool)
		}
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

// set sets the alarm. It is called under mu.
func (t *Timer) set() {
	already := time.Duration(suspended.Load()) - t.since.suspended
	t.alarm.ringAt(t.since.boot + t.d - already)
}

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

// ringAnew sets the alarms after a suspension that the machine knows nothing of.
func ringAnew() {
	alarms.Lock()
	defer alarms.Unlock()
	for t := range alarms.of {
		t.mu.Lock()
		t.set()
		t.mu.Unlock()
	}
}
