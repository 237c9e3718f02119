//go:build unix && !linux

package child

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock is the clock of [Now]: it is the same for all processes. Whether it goes on
// while the machine is suspended differs from system to system.
const clock = unix.CLOCK_MONOTONIC

// An alarm does nothing here: a guard that adopts nobody polls, and so sees the time.
type alarm struct{ rings <-chan struct{} }

func newAlarm() (alarm, error) { return alarm{}, nil }

func (alarm) set(time.Duration) {}
