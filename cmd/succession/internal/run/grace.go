package run

import (
	"fmt"
	"time"
)

// Of a session's time, ttl, the grace time is a part at the end. A session is
// confirmed again and again, and each confirmation moves its deadline ahead, to at
// most ttl from then. Only when no confirmation has come until a grace time
// before the deadline does the command get TERM:
//
//	confirmed                    TERM            KILL  deadline
//	    |──────── ttl ─────────────|──── grace ────|──────|
//
// So a longer grace time leaves less time for a confirmation to be late, and one
// that is too long ends every term at once. What a session can keep it says itself
// ([backend.Session] MaxMargin).

// graceWithoutTTL is the default where the session has no time of its own: the
// command has to end only when somebody asks the leader to resign, or removes it.
const graceWithoutTTL = 5 * time.Second

// graceFor returns the grace time for a session with the given time, which can keep at
// most so much: asked, where that is not 0 and possible, or a default.
func graceFor(asked, ttl, most time.Duration) (time.Duration, error) {
	switch {
	case asked < 0:
		return 0, fmt.Errorf("--grace %v is negative; give the time that the command may take to stop, such as 2s", asked)
	case ttl == 0 && asked == 0:
		return graceWithoutTTL, nil
	case ttl == 0:
		return asked, nil
	case asked == 0:
		return min(ttl/5, most), nil
	case asked > most:
		return 0, fmt.Errorf("--grace %v is too long for a session of %v: the command would have to stop that long before the session's end, which leaves %v for the coordinator to confirm the session; give at most %v, or ask for a longer session in --url",
			asked, ttl, max(0, ttl-asked), most.Truncate(time.Millisecond))
	}
	return asked, nil
}

// killIn returns how long a command may go on that got TERM at the instant told:
// for the grace time, but never into the last tenth of it before the session's
// deadline, which is for the kernel to kill it in. The zero deadline is none.
func killIn(now, told, deadline time.Time, grace time.Duration) time.Duration {
	left := told.Add(grace).Sub(now)
	if !deadline.IsZero() {
		left = min(left, deadline.Add(-grace/10).Sub(now))
	}
	return max(left, 0)
}
