package clock

import "time"

// Instants that others have written are believed only between these two, because no clock is more
// wrong than that. The time between the two fits a time.Duration, and JSON can express both.
var earliest, latest = time.Unix(0, 0).UTC(), time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC)

// Believable returns the believable instant that is nearest to t. The zero time stays, because it
// means that there is none.
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
