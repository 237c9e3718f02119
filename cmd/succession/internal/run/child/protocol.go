//go:build unix

package child

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// What the parent and the guard say to each other, a line each. The formats are
// for Fprintf on one side and Sscanf on the other. The end of the parent's pipe means KILL for everything.
const (
	orderSignal = "signal %d\n" // a signal for the command's process group
	orderUntil  = "until %d\n"  // the instant of Now at which to kill, in nanoseconds; 0 is never
	orderSweep  = "sweep\n"     // TERM for what the command left behind

	reportReady   = "ready\n"          // it waits for the first orderUntil to start the command
	reportStarted = "started %d\n"     // the command's process id
	reportFailed  = "failed %d\n"      // the errno of execve(2)
	reportExpired = "expired\n"        // it was too late to start the command
	reportStopped = "stopped %d\n"     // the command stands still, by this signal
	reportRefused = "refused %d\n"     // this process is another user's, and takes no signal
	reportBlind   = "blind %q\n"       // why it could not look for everything that it has to kill; it tries again
	reportEnded   = "ended %d %d %t\n" // exit code, signal, whether its time was over
)

// scan reads a line that was written with format.
func scan(line, format string, args ...any) bool {
	_, err := fmt.Sscanf(line, format, args...)
	return err == nil
}

// Now is the present instant on the clock by which a command's time is measured. It
// means the same to all processes of this machine, until that is started anew.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clockID, &ts); err != nil {
		panic(err) // every system that this is built for has the clock
	}
	return time.Duration(ts.Nano())
}
