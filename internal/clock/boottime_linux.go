package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// clockBoottime is CLOCK_BOOTTIME of linux/time.h. Package syscall does not have it.
const clockBoottime = 7

// sinceBoot reads CLOCK_BOOTTIME, which goes on while the machine is suspended
// (clock_gettime(2)). It returns 0 if the clock cannot be read.
func sinceBoot() time.Duration {
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
