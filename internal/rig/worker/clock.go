//go:build linux

package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the present time of a clock that all processes of the machine share, and
// that counts suspension as deadlines do: CLOCK_BOOTTIME of clock_gettime(2).
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // Linux has had it since 2.6.39
	}
	return time.Duration(ts.Nano())
}

// Clock returns the clock of a history that began at the given time of [Now].
func Clock(origin time.Duration) func() time.Duration {
	return func() time.Duration { return Now() - origin }
}
