package clock

import (
	"bytes"
	"context"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// firesIn returns how long the timer takes to fire, or limit if it has not fired by then.
func firesIn(t *Timer, limit time.Duration) time.Duration {
	began := time.Now()
	select {
	case <-t.C:
	case <-time.After(limit):
		return limit
	}
	return time.Since(began)
}

func TestTimer(t *testing.T) {
	timer := NewTimer()
	defer timer.Stop()
	timer.Reset(Now(), time.Hour)
	for range 2 {
		timer.Reset(Now(), 20*time.Millisecond)
		if d := firesIn(timer, time.Minute); d < 15*time.Millisecond || d == time.Minute {
			t.Errorf("a timer of 20 ms took %v to fire", d)
		}
	}
	timer.Reset(Now(), -1)
	if d := firesIn(timer, time.Minute); d == time.Minute {
		t.Error("a timer whose time has passed has not fired")
	}
}

func TestTimerCountsSuspension(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("timers of this system do not count suspension")
	}
	timer, later := NewTimer(), NewTimer()
	defer timer.Stop()
	defer later.Stop()
	timer.Reset(Now(), time.Hour)
	later.Reset(Now(), 3*time.Hour)
	Suspend(2 * time.Hour)
	if d := firesIn(timer, time.Minute); d == time.Minute {
		t.Error("a timer of an hour has not fired after a suspension of two")
	}
	if d := firesIn(later, 50*time.Millisecond); d < 50*time.Millisecond {
		t.Errorf("a timer of three hours has fired %v after a suspension of two", d)
	}
}

// In virtual time a Timer fires by that time, as timers of package time do.
func TestTimerInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := NewTimer()
		defer timer.Stop()
		for range 2 {
			timer.Reset(Now(), time.Minute)
			timer.Reset(Now(), time.Hour)
			if d := firesIn(timer, 2*time.Hour); d != time.Hour {
				t.Errorf("a timer of an hour took %v to fire", d)
			}
		}
	})
}

// Timers share what they need of the system, and each fires at its own time.
func TestManyTimers(t *testing.T) {
	before := runtime.NumGoroutine()
	timers := make([]*Timer, 100)
	for i := range timers {
		timers[i] = NewTimer()
		defer timers[i].Stop()
		timers[i].Reset(Now(), time.Hour)
	}
	if n := runtime.NumGoroutine() - before; n > 10 { // others may start some
		t.Errorf("a hundred timers that are set have %d goroutines", n)
	}
	began, delay := Now(), func(i int) time.Duration { return time.Duration(1+i*37%100) * time.Millisecond }
	for i, timer := range timers {
		timer.Reset(began, delay(i))
	}
	timers[50].Reset(began, time.Hour)
	timers[51].Stop()
	for i, timer := range timers {
		if i == 50 || i == 51 {
			continue
		}
		<-timer.C
		if d := Since(began); d < delay(i) {
			t.Errorf("a timer of %v has fired after %v", delay(i), d)
		}
	}
	for _, i := range []int{50, 51} {
		if d := firesIn(timers[i], 20*time.Millisecond); d < 20*time.Millisecond {
			t.Errorf("timer %d has fired, and should not", i)
		}
	}
}

// What all timers share does not count as that of whoever set the first: it has none of the labels
// that a profile, or the conformance suite, tells goroutines apart by.
func TestNobodysAlarm(t *testing.T) {
	timer := NewTimer()
	defer timer.Stop()
	pprof.Do(t.Context(), pprof.Labels("set", "the first timer"), func(context.Context) {
		timer.Reset(Now(), time.Millisecond)
		<-timer.C
	})
	var goroutines bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&goroutines, 1); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(goroutines.String(), "the first timer") {
		t.Errorf("a goroutine has the label of who set the timer:\n%s", &goroutines)
	}
}

// A timer that is stopped leaves no goroutine behind.
func TestStoppedTimer(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 100 {
		timer := NewTimer()
		timer.Reset(Now(), time.Hour)
		timer.Reset(Now(), 2*time.Hour)
		timer.Stop()
	}
	if pending.users != 0 || pending.alarm != nil {
		t.Errorf("%d timers count as set, and the alarm is %v", pending.users, pending.alarm)
	}
	if n := runtime.NumGoroutine() - before; n > 10 { // others may start some
		t.Errorf("%d goroutines are left of a hundred timers", n)
	}
	NewTimer().Stop() // a timer that was never set can be stopped
}

// A timer that is stopped does not fire, and stops no other: not when it was never set, not when it is stopped again.
func TestStopIsForOneTimer(t *testing.T) {
	check := func(t *testing.T) {
		other, first := NewTimer(), NewTimer()
		defer other.Stop()
		other.Reset(Now(), 60*time.Millisecond)
		first.Reset(Now(), 20*time.Millisecond)
		first.Stop()
		first.Stop()
		for range 3 {
			NewTimer().Stop()
		}
		if d := firesIn(other, time.Minute); d == time.Minute {
			t.Error("another timer has not fired")
		}
		if d := firesIn(first, time.Millisecond); d < time.Millisecond {
			t.Error("a timer that was stopped has fired")
		}
		if other.Exact() != (runtime.GOOS == "linux" && !virtual()) {
			t.Errorf("it counts suspensions: %t", other.Exact())
		}
	}
	check(t)
	synctest.Test(t, check)
}

// A timer that is set anew, to an earlier time or a later one, fires then, whichever timer was the first.
func TestResetOfManyTimers(t *testing.T) {
	var timers []*Timer
	for range 8 {
		timers = append(timers, NewTimer())
		defer timers[len(timers)-1].Stop()
	}
	began := Now()
	for i, timer := range timers {
		timer.Reset(began, time.Hour+time.Duration(i)*time.Minute)
	}
	timers[5].Reset(began, time.Millisecond)
	if d := firesIn(timers[5], time.Minute); d == time.Minute {
		t.Error("a timer that was not the first, and is now, has not fired")
	}
	for i, timer := range timers { // the last one becomes the first
		timer.Reset(began, time.Duration(len(timers)-i)*15*time.Millisecond)
	}
	for i, timer := range timers {
		<-timer.C
		if d := Since(began); d < time.Duration(len(timers)-i)*15*time.Millisecond {
			t.Errorf("timer %d has fired after %v", i, d)
		}
	}
}

// A timer that is set after a suspension counts from then.
func TestTimerAfterASuspension(t *testing.T) {
	Suspend(time.Hour)
	timer := NewTimer()
	defer timer.Stop()
	timer.Reset(Now(), 30*time.Millisecond)
	if d := firesIn(timer, time.Minute); d < 25*time.Millisecond || d == time.Minute {
		t.Errorf("a timer of 30 ms took %v to fire", d)
	}
}
