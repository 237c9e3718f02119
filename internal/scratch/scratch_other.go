//go:build !linux

package scratch

// Memory returns "": there is no folder in memory that is known.
func Memory() string { return "" }
