package kit

import (
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
)

// SilentFor returns how long a session with that TTL must be seen without a new heartbeat before others end
// it, on a coordinator that ends no session by itself: by then its own process has seen its deadline pass.
// The twentieth is for clocks that run at different rates.
func SilentFor(ttl time.Duration) time.Duration { return ttl + ttl/20 }

// A Silence is what a process has seen of another's session since that session's newest heartbeat. It is
// measured by the clock of whoever looks, from when the heartbeat was first seen, whenever it was sent.
type Silence struct {
	Since clock.Instant // when the answer came that first had the heartbeat
	asked clock.Instant // when the coordinator was asked to end the session; zero if it was not
}

// Due reports whether the session is to be ended now, and when to look again. If it is still there a quarter
// of its TTL after Due was true, it is due again.
func (s *Silence) Due(now clock.Instant, ttl time.Duration) (next time.Duration, due bool) {
	left := SilentFor(ttl) - now.Sub(s.Since)
	if !s.asked.IsZero() {
		left = ttl/4 - now.Sub(s.asked)
	}
	if left > 0 {
		return left, false
	}
	s.asked = now
	return ttl / 4, true
}
