// Package scratch says where tests, and the servers that they start, write what need not last. Whoever measures how
// busy that is writes there, too. Package conformance links it, and so has nothing but the standard library.
package scratch

import (
	"os"
	"syscall"
)

// From linux/magic.h, linux/statfs.h and unistd.h.
const (
	tmpfs    = 0x01021994
	noExec   = 8
	writable = 2
)

// Memory returns a folder in memory. It returns "" if there is none with room for some servers, as in many containers,
// and if TMPDIR says where temporary files are to be.
func Memory() string {
	if os.Getenv("TMPDIR") != "" {
		return ""
	}
	const folder, room = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if syscall.Statfs(folder, &fs) != nil || int64(fs.Type) != tmpfs || int64(fs.Flags)&noExec != 0 ||
		fs.Bavail*uint64(fs.Bsize) < room || syscall.Access(folder, writable) != nil {
		return ""
	}
	return folder
}
