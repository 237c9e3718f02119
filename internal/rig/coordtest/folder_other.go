//go:build !linux

package coordtest

func memoryFolder() string { return "" }
