//go:build unix

package ui

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalName returns the name of sig, such as SIGTERM.
func SignalName(sig os.Signal) string {
	if s, ok := sig.(syscall.Signal); ok && unix.SignalName(s) != "" {
		return unix.SignalName(s)
	}
	return sig.String()
}
