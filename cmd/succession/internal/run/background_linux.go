package run

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// writeInBackground lets the calling goroutine write to a terminal while another process group has the foreground, even if
// the terminal stops those who do that (stty tostop). The command has the foreground, and if this process stood still, it
// would lose its session. The signal is blocked in this goroutine's thread alone, which ends with the goroutine: if the
// process ignored it, the command would inherit that.
func writeInBackground() {
	runtime.LockOSThread()
	var stop unix.Sigset_t
	stop.Val[0] = 1 << (unix.SIGTTOU - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &stop, nil) // it fails for wrong arguments only
}
