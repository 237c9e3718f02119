package coordtest

import "syscall"

// Windows has no such signals, and os.Process.Signal refuses these.
const (
	sigPause  = syscall.Signal(-1)
	sigResume = syscall.Signal(-2)
)
