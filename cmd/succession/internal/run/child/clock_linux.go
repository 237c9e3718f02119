package child

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// clock is the clock of [Now]: it is the same for all processes, and goes on while
// the machine is suspended (clock_gettime(2)).
const clock = unix.CLOCK_BOOTTIME

// An alarm rings at an instant of [Now]. A timer of package time would not do: it
// stands still while the machine is suspended.
type alarm struct {
	fd    int
	rings <-chan struct{}
}

// newAlarm returns an alarm that is not set. It lasts as long as the process.
func newAlarm() (alarm, error) {
	fd, err := unix.TimerfdCreate(clock, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return alarm{}, os.NewSyscallError("timerfd_create", err)
	}
	rings := make(chan struct{})
	go func() {
		timer := os.NewFile(uintptr(fd), "timer")
		for {
			if _, err := timer.Read(make([]byte, 8)); err != nil {
				return
			}
			rings <- struct{}{}
		}
	}()
	return alarm{fd, rings}, nil
}

// set makes the alarm ring at the instant at, or at once if that is past; 0 is never.
func (a alarm) set(at time.Duration) {
	// It fails only for an instant before the beginning of the clock.
	_ = unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}, nil)
}
