// Package program is what the programs of this module have in common, but for candidates: what
// interrupts them, and how they write files.
package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context returns the context of a program, which ends at a signal that asks the program to end.
// The end of its terminal does not end a program that nohup has started.
func Context() (ctx context.Context, stop context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), signals...)
}

// WriteFile writes a file as a whole. A program that ends while it writes leaves the old one.
func WriteFile(path string, b []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, b, 0o644); err != nil {
		return err
	}
	return os.Rename(part, path)
}
