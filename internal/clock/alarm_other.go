//go:build !linux

package clock

import "time"

// An alarm is what this system does not have: a timer that counts suspension.
type alarm struct{}

func newAlarm(func()) *alarm { return nil }

func (*alarm) ringAt(time.Duration) {}

func (*alarm) stop() {}
