//go:build !linux

package clock

import "time"

// sinceBoot returns 0, which stands for unknown: Go can read no clock of this system that
// counts suspensions.
func sinceBoot() time.Duration { return 0 }

// An alarm would be a timer that counts suspensions. This system has none.
type alarm struct{}

func virtual() bool { return true } // no alarm is wanted

func newAlarm(func()) *alarm { return nil }

func (*alarm) ringAt(time.Duration) {}

func (*alarm) stop() {}
