package clock

import (
	"container/heap"
	"sync"
	"time"
)

// A Timer fires when a time has elapsed since an instant. On Linux it counts suspensions of
// the machine, and those of [Suspend]. A timer of package time stands still meanwhile, and
// fires late by as much. All timers of a process together need one file descriptor and one
// goroutine, from the first Reset until the last Stop. A Timer is for one goroutine at a time.
type Timer struct {
	// C receives a value when the timer fires. The value may be left from a time that was
	// set before, so the receiver must look at the clock.
	C <-chan struct{}

	c     chan struct{}
	plain *time.Timer // used if there can be no alarm
	exact bool        // it uses the alarm

	at    time.Duration // when it fires, as pending counts; belongs to that
	index int           // in the heap of pending, or -1
}

// pending are the timers that share the alarm. Times count from when the machine booted, plus the
// times of Suspend.
var pending struct {
	sync.Mutex
	alarm *alarm // nil without users
	users int    // timers that have been set and not been stopped
	byTime
}

// byTime is a heap of the timers that are to fire.
type byTime []*Timer

func (h byTime) Len() int           { return len(h) }
func (h byTime) Less(i, j int) bool { return h[i].at < h[j].at }

func (h byTime) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *byTime) Push(x any) {
	t := x.(*Timer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *byTime) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	t.index = -1
	return t
}

// NewTimer returns a timer that is not set. The caller must call Stop.
func NewTimer() *Timer {
	c := make(chan struct{}, 1)
	return &Timer{C: c, c: c, index: -1}
}

// Reset makes the timer fire when d has elapsed since the instant, instead of at the time that
// was set before. Callers must take the instant before they compute d, so that a suspension in
// between counts. Reset does not block.
func (t *Timer) Reset(since Instant, d time.Duration) {
	if t.plain == nil && !t.set(since.boot+since.suspended+d) {
		t.plain = time.AfterFunc(d, t.fire)
	} else if t.plain != nil {
		t.plain.Reset(d)
	}
}

// set makes the alarm ring for the timer. It reports false if there can be no alarm.
func (t *Timer) set(at time.Duration) bool {
	if !t.exact && virtual() {
		return false
	}
	pending.Lock()
	defer pending.Unlock()
	if pending.alarm == nil {
		if pending.alarm = newAlarm(ring); pending.alarm == nil {
			return false
		}
	}
	if !t.exact {
		t.exact = true
		pending.users++
	}
	t.at = at
	if t.index < 0 {
		heap.Push(&pending, t)
	} else {
		heap.Fix(&pending, t.index)
	}
	if t.index == 0 {
		wind()
	}
	return true
}

// wind sets the alarm for the first of the timers. The caller holds the lock of pending.
func wind() {
	if pending.Len() > 0 {
		pending.alarm.ringAt(pending.byTime[0].at - time.Duration(suspended.Load()))
	}
}

// ring fires the timers whose time has come. The alarm calls it.
func ring() {
	pending.Lock()
	defer pending.Unlock()
	now := Now()
	for pending.Len() > 0 && pending.byTime[0].at <= now.boot+now.suspended {
		heap.Pop(&pending).(*Timer).fire()
	}
	wind()
}

// ringAnew sets the alarm again after [Suspend], of which the kernel knows nothing.
func ringAnew() {
	pending.Lock()
	defer pending.Unlock()
	wind()
}

// Exact reports whether the timer counts suspensions. It is for after the first Reset.
func (t *Timer) Exact() bool { return t.exact }

// Stop ends the timer, and releases what it holds. It does not block. Stopping it again does nothing.
func (t *Timer) Stop() {
	if t.plain != nil {
		t.plain.Stop()
	}
	if t.exact {
		t.leave().stop()
	}
}

// leave takes the timer out of pending. It returns the alarm if no other timer uses it, or nil.
func (t *Timer) leave() (unused *alarm) {
	pending.Lock()
	defer pending.Unlock()
	if t.index >= 0 {
		heap.Remove(&pending, t.index)
	}
	t.exact = false
	if pending.users--; pending.users == 0 {
		unused, pending.alarm = pending.alarm, nil
	}
	return unused
}

func (t *Timer) fire() {
	select {
	case t.c <- struct{}{}:
	default:
	}
}
