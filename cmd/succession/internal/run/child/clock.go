//go:build unix

package child

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the present instant on the clock by which a command's time is measured. It
// means the same to all processes of this machine, until that is started anew.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		panic(err) // every system that this is built for has the clock
	}
	return time.Duration(ts.Nano())
}
