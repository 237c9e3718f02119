package candidate

import "time"

// workPause is the time between two acts of a leader: long beside the asking, and short beside
// what a fault takes.
const workPause = time.Millisecond

// work acts as the leader for as long as the library says yes, and returns the time of the last
// act; the election counts as one. It also ends when the leader is told to leave. If leads is nil
// there is nothing to ask, and it waits for that.
//
// An act is dated before the asking. The library has thus said yes no earlier than the act's
// date, and two terms whose acts overlap have overlapped. Dated afterwards, an act of a process
// that was stopped between the answer and the clock would be held against a library that said
// nothing wrong. What goes unseen is about a pause and an asking, the same for all.
func work(elected time.Time, leads func() bool, leave <-chan struct{}) (last time.Time, leaves bool) {
	last = elected
	if leads == nil {
		<-leave
		return last, true
	}
	tick := time.NewTicker(workPause)
	defer tick.Stop()
	for {
		asked := time.Now()
		if !leads() {
			return last, false
		}
		last = asked
		select {
		case <-tick.C:
		case <-leave:
			return last, true
		}
	}
}

// open reports whether a channel that is closed at the end of a term has not been.
func open(end <-chan struct{}) bool {
	select {
	case <-end:
		return false
	default:
		return true
	}
}
