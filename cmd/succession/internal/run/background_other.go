//go:build !linux

package run

// writeInBackground does nothing: here the mask of a single thread cannot be set.
func writeInBackground() {}
