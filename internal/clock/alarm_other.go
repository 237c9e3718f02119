//go:build !linux

package clock

import "time"

// An alarm would be a timer that counts suspensions. This system has none.
type alarm struct{}

func newAlarm(func()) *alarm { return nil }

func (*alarm) ringAt(time.Duration) {}

func (*alarm) stop() {}
