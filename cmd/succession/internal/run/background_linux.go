package run

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// writeInBackground lets the calling goroutine write to a terminal of which another process group has the foreground, also if
// the terminal is set to stop those who do that (stty tostop): a command has the foreground, and who stands still loses its
// session. The signal is blocked for this goroutine's thread alone, which ends with it, as whoever is started would inherit
// that this process ignores it.
func writeInBackground() {
	runtime.LockOSThread()
	var stop unix.Sigset_t
	stop.Val[0] = 1 << (unix.SIGTTOU - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &stop, nil) // it fails for wrong arguments only
}
