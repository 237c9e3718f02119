package clock

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// An alarm rings by CLOCK_BOOTTIME, which goes on while the machine is suspended: it rings
// when that is over (timerfd_create(2)).
type alarm struct {
	fd    uintptr // of file, whose method Fd would make it block
	file  *os.File
	ended chan struct{}
}

// newAlarm returns an alarm that is not set and calls ring, which must not block; nil where
// there can be none, as the process has no file left. In the virtual time of a test
// (testing/synctest) there is none either: it would ring by the time of the machine.
func newAlarm(ring func()) *alarm {
	if virtual() {
		return nil
	}
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, clockBoottime, syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if errno != 0 {
		return nil
	}
	a := &alarm{fd, os.NewFile(fd, "timer"), make(chan struct{})}
	go func() {
		defer close(a.ended)
		for count := make([]byte, 8); ; {
			if _, err := a.file.Read(count); err != nil {
				return
			}
			ring()
		}
	}()
	return a
}

// virtual reports whether package time shows another time than the machine does.
func virtual() bool {
	var tv syscall.Timeval
	if err := syscall.Gettimeofday(&tv); err != nil {
		return false
	}
	return time.Since(time.Unix(tv.Unix())).Abs() > time.Hour
}

// ringAt has the alarm ring so long after the boot of the machine, at once where that is
// past, and not at the time that it was set for.
func (a *alarm) ringAt(boot time.Duration) {
	const absolute = 1 // TFD_TIMER_ABSTIME of linux/timerfd.h
	spec := struct{ interval, value syscall.Timespec }{value: syscall.NsecToTimespec(int64(max(boot, 1)))}
	// It fails for what is no timer alone.
	_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, a.fd, absolute, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
}

// stop ends the alarm. It must not be set any more.
func (a *alarm) stop() {
	_ = a.file.Close()
	<-a.ended
}
