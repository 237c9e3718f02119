//go:build !linux

package clock

import "time"

// sinceBoot returns 0, which stands for unknown: Go can read no clock of this system that
// counts suspensions.
func sinceBoot() time.Duration { return 0 }
