package lease_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/backend/kit/lease"
)

func near(t *testing.T, l *lease.Lease, want time.Duration) {
	t.Helper()
	// The clock of a bubble stands still, but the clock that counts suspensions does not.
	if got := l.Left(); got > want || got < want-50*time.Millisecond {
		t.Errorf("%v left, want %v", got, want)
	}
}

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease.Lease
		if l.Left() > 0 || l.Hold(true) {
			t.Error("the zero lease has a deadline ahead")
		}
		begin := clock.Now()
		time.Sleep(time.Second)
		l.Extend(begin, 10*time.Second)
		near(t, &l, 9*time.Second) // it counts from when the request was sent
		l.Extend(begin, 5*time.Second)
		near(t, &l, 9*time.Second) // Extend never moves it back
		l.Cap(clock.Now(), 20*time.Second)
		near(t, &l, 9*time.Second)
		l.Cap(clock.Now(), 4*time.Second)
		near(t, &l, 4*time.Second)
		if d := time.Until(l.Deadline()); d > 4*time.Second || d < 3900*time.Millisecond {
			t.Errorf("Deadline in %v", d)
		}
	})
}

func TestHeldLeaseIsNotRevived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease.Lease
		l.Extend(clock.Now(), time.Second)
		time.Sleep(2 * time.Second)
		if !l.Extend(clock.Now(), time.Second) || l.Left() <= 0 {
			t.Error("a lease that nobody relies on is not revived")
		}
		if !l.Hold(true) {
			t.Error("Hold: deadline is not ahead")
		}
		time.Sleep(2 * time.Second)
		if l.Extend(clock.Now(), time.Hour) || l.Left() > 0 {
			t.Error("a deadline that somebody relied on was revived")
		}
		if held, left := l.Held(); !held || left > 0 {
			t.Errorf("held %v, %v left", held, left)
		}
		if l.Hold(true) {
			t.Error("Hold: ahead again")
		}
		l.Hold(false)
		if !l.Extend(clock.Now(), time.Second) || l.Left() <= 0 {
			t.Error("let go, and still not revived")
		}
	})
}

func TestEndedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease.Lease
		l.Extend(clock.Now(), time.Minute)
		l.Hold(true)
		l.End()
		if held, _ := l.Held(); held {
			t.Error("an ended session is one whose deadline has passed unseen")
		}
		if l.Left() > 0 || time.Until(l.Deadline()) > 0 {
			t.Errorf("%v left at the end", l.Left())
		}
		if l.Extend(clock.Now(), time.Minute) || l.Hold(true) || l.Left() > 0 {
			t.Error("revived")
		}
	})
}

// A zero lease has no deadline ahead, however much time seems to have passed.
func TestZeroLease(t *testing.T) {
	clock.Suspend(time.Hour)
	var l lease.Lease
	if l.Left() >= 0 {
		t.Errorf("the zero lease has %v left", l.Left())
	}
	l.Cap(clock.Now(), time.Minute)
	if l.Left() >= 0 {
		t.Errorf("a zero lease that is capped has %v left", l.Left())
	}
}

// Whoever measures is told of each heartbeat that has moved the deadline, and of no other.
func TestConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease.Lease
		l.Extend(clock.Now(), time.Minute) // nobody measures
		type heartbeat struct{ roundTrip, slack time.Duration }
		var told []heartbeat
		l.Confirmed = func(roundTrip, slack time.Duration) {
			// The clock that counts suspensions goes on in the bubble.
			told = append(told, heartbeat{roundTrip.Round(time.Second), slack.Round(time.Second)})
		}
		time.Sleep(10 * time.Second)
		sent := clock.Now()
		time.Sleep(2 * time.Second)
		l.Extend(sent, time.Minute)
		l.Extend(sent, time.Second)                  // is earlier
		l.ExtendFrom(clock.Now(), time.Minute, sent) // another instant counts than that of the request
		time.Sleep(2 * time.Minute)
		l.Extend(clock.Now(), time.Minute)
		l.Hold(true)
		time.Sleep(2 * time.Minute)
		l.Extend(clock.Now(), time.Minute) // is refused
		want := []heartbeat{{2 * time.Second, 48 * time.Second}, {2 * time.Second, 58 * time.Second}, {0, 0}}
		if !slices.Equal(told, want) {
			t.Errorf("told of %v, want %v", told, want)
		}
	})
}

// A session that ends after its deadline has had that deadline.
func TestEndAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease.Lease
		l.Extend(clock.Now(), time.Second)
		time.Sleep(time.Minute)
		l.End()
		near(t, &l, -59*time.Second)
	})
}

// What counts is the time since a request was sent, also if its ttl is another than that of the heartbeat before.
func TestOlderRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease.Lease
		older := clock.Now()
		time.Sleep(3 * time.Second)
		l.Extend(clock.Now(), 9*time.Second)
		l.Extend(older, 11*time.Second) // ends a second before
		near(t, &l, 9*time.Second)
		l.Extend(older, 13*time.Second)
		near(t, &l, 10*time.Second)
		l.Cap(older, 12*time.Second) // ends a second before
		near(t, &l, 9*time.Second)
		l.Cap(older, 14*time.Second)
		near(t, &l, 9*time.Second)
	})
}

// A deadline on which somebody relies moves ahead as any other, until it has passed. Whoever relies on it anew then does not
// begin to, and does not let go either.
func TestHeldLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease.Lease
		l.Extend(clock.Now(), 10*time.Second)
		if !l.Hold(true) {
			t.Error("the deadline is not ahead")
		}
		time.Sleep(5 * time.Second)
		if !l.Extend(clock.Now(), 10*time.Second) {
			t.Error("a held lease is not extended before its deadline")
		}
		near(t, &l, 10*time.Second)
		time.Sleep(11 * time.Second)
		if l.Hold(true) {
			t.Error("the deadline is ahead")
		}
		if held, _ := l.Held(); !held {
			t.Error("it was let go")
		}
		if l.Extend(clock.Now(), time.Hour) || l.Left() > 0 {
			t.Error("a deadline that somebody relied on was revived")
		}
		l.Hold(false)
		if l.Hold(true) {
			t.Error("the deadline is ahead")
		}
		if held, _ := l.Held(); held {
			t.Error("a lease whose deadline had passed is held")
		}
	})
}
