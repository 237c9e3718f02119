package postgres

import "time"

// A far says whether a member that waits is far from the head of its line. Then nothing that
// happens there concerns it for a while: its session looks from time to time instead of listening,
// and sends fewer heartbeats, if it has no nearer member. The server signals every connection that
// listens at each commit that notifies. So in a line of a thousand in which all listen, each exit
// wakes a thousand processes of the server, for one.
//
// A far member must become near before its turn comes. So in a fast line it does not count as far,
// nor before it has seen how fast the line is: between two looks at most a quarter of the members
// in front may have left. If suddenly many leave, it is late by at most the time between two looks.
type far struct {
	ttl   time.Duration
	depth int       // how many stood before the one in front, when that was noted last
	since time.Time // when that was; zero for never
	now   bool
}

const (
	// near is how many may stand before the one in front of a member that listens in any case.
	near = 16
	// remote is how many stand there at least if it looks twice in a session time, and not four times.
	remote = 64
)

// see notes what a look has found.
func (f *far) see(depth int, at time.Time) {
	switch moved := f.depth - depth; {
	case depth < near:
		f.now = false
	case !f.since.IsZero() && at.Sub(f.since) < f.pause():
		return // something has woken it
	default:
		f.now = !f.since.IsZero() && depth >= 4*moved
	}
	f.depth, f.since = depth, at
}

// pause is the time until the next look of a member that is far, or may be.
func (f *far) pause() time.Duration {
	if f.now && f.depth >= remote {
		return f.ttl / 2
	}
	return f.ttl / 4
}

// interval is the time between two heartbeats. If the session leads nowhere, all its waiters are
// far, and all sessions that it observes live, it is half the session time, or somewhat less, so
// that sessions that have begun together do not stay in step.
func (s *session) interval() time.Duration {
	ttl := s.b.o.TTL
	if s.listener.quiet() && !s.led.Load() && !s.observer.alarm {
		return ttl/2 - time.Duration(s.spread*float64(ttl/8))
	}
	return ttl / 4
}
