package clock

import "time"

// No instant that others have written is believed outside of these: clocks do not go as wrong. The
// time between any two of them is a time.Duration, and what JSON can have.
var earliest, latest = time.Unix(0, 0).UTC(), time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)

// Believable returns the instant that is nearest to t of those that can be believed. The zero time
// stays: it says that there is none.
func Believable(t time.Time) time.Time {
	switch {
	case t.IsZero():
		return time.Time{}
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	}
	return t
}
