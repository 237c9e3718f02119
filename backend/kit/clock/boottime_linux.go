package clock

import (
	"os"
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

// An alarm is a timer on CLOCK_BOOTTIME, which goes on while the machine is suspended. If its
// time comes during a suspension, it rings at the end of that (timerfd_create(2)).
type alarm struct {
	fd    uintptr // of file; its method Fd would make it block
	file  *os.File
	ended chan struct{}
}

// newAlarm returns an alarm that is not set. It will call ring, which must not block.
// newAlarm returns nil if the kernel refuses a timer, as when the process may open no more
// files.
func newAlarm(ring func()) *alarm {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, clockBoottime, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return nil
	}
	a := &alarm{fd, os.NewFile(fd, "timer"), make(chan struct{})}
	// A goroutine that a timer starts does not inherit the labels (pprof.Do) of the first caller.
	time.AfterFunc(0, func() { a.await(ring) })
	return a
}

// await calls ring when the alarm rings, until stop.
func (a *alarm) await(ring func()) {
	defer close(a.ended)
	for count := make([]byte, 8); ; {
		if _, err := a.file.Read(count); err != nil {
			return
		}
		ring()
	}
}

// virtual reports whether package time shows another time than the machine does, as in a test with
// testing/synctest: an alarm would ring by the time of the machine.
func virtual() bool {
	var tv syscall.Timeval
	if err := syscall.Gettimeofday(&tv); err != nil {
		return false
	}
	return time.Since(time.Unix(tv.Unix())).Abs() > time.Hour
}

// ringAt makes the alarm ring when boot has passed since the machine booted, at once if it
// has, instead of at the time that was set before.
func (a *alarm) ringAt(boot time.Duration) {
	const absolute = 1 // TFD_TIMER_ABSTIME of linux/timerfd.h
	spec := struct{ interval, value syscall.Timespec }{value: syscall.NsecToTimespec(int64(max(boot, 1)))}
	// It fails only if fd is no timer.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, a.fd, absolute, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

// stop ends the alarm, which must not be used after that. The alarm may be nil.
func (a *alarm) stop() {
	if a == nil {
		return
	}
	_ = a.file.Close()
	<-a.ended
}
