//go:build !unix

package ui

import "os"

// SignalName returns the name of sig, as the system has it.
func SignalName(sig os.Signal) string { return sig.String() }
