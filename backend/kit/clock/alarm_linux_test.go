package clock

import (
	"syscall"
	"testing"
	"time"
)

// An alarm rings at its time, and not before; at once if that has passed.
func TestAlarm(t *testing.T) {
	rings := make(chan struct{}, 100)
	a := newAlarm(func() { rings <- struct{}{} })
	defer a.stop()
	began := sinceBoot()
	a.ringAt(began + 30*time.Millisecond)
	<-rings
	if d := sinceBoot() - began; d < 30*time.Millisecond {
		t.Errorf("an alarm of 30 ms has rung after %v", d)
	}
	for _, past := range []time.Duration{began, 0, -time.Hour} {
		a.ringAt(past)
		<-rings
	}
}

// Where the kernel refuses an alarm, a timer of package time fires.
func TestTimerWithoutAlarm(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: files.Max}); err != nil {
		t.Fatal(err)
	}
	timer := NewTimer()
	defer timer.Stop()
	timer.Reset(Now(), 10*time.Millisecond)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	if d := firesIn(timer, time.Minute); d < 5*time.Millisecond || d == time.Minute {
		t.Errorf("a timer of 10 ms took %v to fire", d)
	}
	if timer.Exact() {
		t.Error("it counts as one that counts suspensions")
	}
}
