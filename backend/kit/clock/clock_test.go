package clock

import (
	"runtime"
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	start := Now()
	if start.IsZero() || !(Instant{}).IsZero() {
		t.Error("only the zero Instant is zero")
	}
	time.Sleep(10 * time.Millisecond) // the test needs real time to pass
	if d := Since(start); d < 10*time.Millisecond || d > time.Minute {
		t.Errorf("10 ms were measured as %v", d)
	}
	if !start.Before(Now()) {
		t.Error("an instant is not before a later one")
	}
}

// The time in which the machine was suspended counts, although the monotonic clock stood
// still. If the clock that counts suspensions lags behind, it does not make a time shorter.
func TestSuspensionCounts(t *testing.T) {
	now := time.Now()
	a := Instant{mono: now, boot: time.Hour}
	tests := []struct {
		name string
		b    Instant
		want time.Duration
	}{
		{"suspended", Instant{mono: now.Add(time.Second), boot: 2 * time.Hour}, time.Hour},
		{"awake", Instant{mono: now.Add(time.Second), boot: time.Hour + time.Second}, time.Second},
		{"boot clock behind", Instant{mono: now.Add(time.Second), boot: time.Hour}, time.Second},
		{"boot clock unknown", Instant{mono: now.Add(time.Second)}, time.Second},
		{"simulated", Instant{mono: now.Add(time.Second), boot: time.Hour + time.Second, suspended: 3 * time.Hour}, 3*time.Hour + time.Second},
	}
	for _, tt := range tests {
		if d := tt.b.Sub(a); d != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, d, tt.want)
		}
	}
	known := Instant{mono: now.Add(time.Second), boot: 2 * time.Hour}
	if d := known.Sub(Instant{mono: now}); d != time.Second {
		t.Errorf("since an instant at which the boot clock was unknown: %v, want a second", d)
	}
}

func TestBootClock(t *testing.T) {
	if got := sinceBoot(); (got > 0) != (runtime.GOOS == "linux") {
		t.Errorf("time since boot is %v on %s", got, runtime.GOOS)
	}
}

// Suspend adds time for every Instant that was taken before it, on every system.
func TestSuspend(t *testing.T) {
	before := Now()
	Suspend(time.Hour)
	if d := Since(before); d < time.Hour || d > time.Hour+time.Minute {
		t.Errorf("an hour of suspension was measured as %v", d)
	}
	if d := Since(Now()); d > time.Minute {
		t.Errorf("a suspension that is over was measured as %v", d)
	}
}

// Instants between 1970 and 2200 are believed; others are moved to the nearest, but for the zero time.
func TestBelievable(t *testing.T) {
	first, last := time.Unix(0, 0), time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)
	now := time.Now()
	for _, tt := range []struct{ at, want time.Time }{
		{time.Time{}, time.Time{}},
		{now, now},
		{first, first},
		{first.Add(-1), first},
		{time.Date(1, time.February, 1, 0, 0, 0, 0, time.UTC), first},
		{last, last},
		{last.Add(1), last},
		{time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC), last},
	} {
		if got := Believable(tt.at); !got.Equal(tt.want) {
			t.Errorf("%v is %v, want %v", tt.at, got, tt.want)
		}
	}
}
