//go:build !linux

package coordtest

import "syscall"

// dieWithParent can promise nothing here: a test binary that is killed leaves its
// servers behind.
func dieWithParent() *syscall.SysProcAttr { return nil }

// waitStopped does not wait: the signal takes effect very soon.
func waitStopped(int) error { return nil }

// Servers of several processes are started on Linux alone.
func childrenOf(int) ([]int, error) { return nil, nil }

func killChildren(int) (gone func()) { return func() {} }

func signalChildren(int, syscall.Signal) error { return nil }
