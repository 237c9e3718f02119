package memory

import "time"

// Deadline returns a session time after the newest acknowledged heartbeat was
// sent; see [backend.Session]. It is kept ahead for every session, whether it
// stands in a line or not.
func (s *session) Deadline() time.Time {
	s.b.c.lock()
	defer s.b.c.unlock()
	return s.deadline
}

// MaxMargin leaves half of the time between two heartbeats for an answer that is slow; see
// [backend.Session].
func (s *session) MaxMargin() time.Duration { return s.TTL() / 2 }

// untilBeat returns the time until the next heartbeat, a third of the TTL after
// the last was sent: two in a row may be lost on the way.
func (s *session) untilBeat(sent time.Time) time.Duration {
	return max(0, time.Until(sent.Add(s.b.c.ttl/3)))
}

// beat sends a heartbeat, unless one is still on its way.
func (s *session) beat() {
	if s.beating != nil {
		return
	}
	cl := s.send(OpHeartbeat, lostAgain, func(l *lease) (any, error) {
		s.b.c.renew(l)
		return nil, nil
	})
	cl.then = func(_ any, err error) {
		s.beating = nil
		if err != nil {
			return
		}
		// The coordinator handled the heartbeat no earlier than it was sent, so from
		// then on the session has a TTL at least, however long the answer took.
		s.deadline = cl.sent.Add(s.b.c.ttl)
		s.expiry.Reset(time.Until(s.deadline))
		s.next.Reset(s.untilBeat(cl.sent))
	}
	s.beating = cl
}
