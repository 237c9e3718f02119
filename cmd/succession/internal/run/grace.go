package run

import (
	"fmt"
	"time"
)

// The grace time is the last part of a session's time, ttl. The coordinator confirms the
// session again and again, and each confirmation moves the deadline ahead, to at most ttl
// from then. The command gets TERM only when no confirmation has come until a grace time
// before the deadline:
//
//	confirmed                    TERM            KILL  deadline
//	    |──────── ttl ─────────────|──── grace ────|──────|
//
// So a longer grace time leaves less time for a confirmation to be late, and one
// that is too long ends every term at once. The session says how long it may be
// ([backend.Session] MaxMargin).

// graceWithoutTTL is the default where the session has no time of its own: the
// command has to end only when somebody asks the leader to resign, or removes it.
const graceWithoutTTL = 5 * time.Second

// graceFor returns the grace time for a session whose time is ttl and whose longest
// possible grace time is most: what was asked for, or a default where asked is 0.
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

// killIn returns how long a command may go on that got TERM at the instant told: for the
// grace time, but at most until a tenth of that before the session's deadline, so that
// the kernel has time to kill it. The zero deadline is none.
func killIn(now, told, deadline time.Time, grace time.Duration) time.Duration {
	left := told.Add(grace).Sub(now)
	if !deadline.IsZero() {
		left = min(left, deadline.Add(-grace/10).Sub(now))
	}
	return max(left, 0)
}
