//go:build unix

package coordtest

import "syscall"

const (
	sigPause  = syscall.SIGSTOP
	sigResume = syscall.SIGCONT
)
