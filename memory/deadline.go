package memory

import (
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Deadline is a session time after the newest acknowledged heartbeat was sent; see
// [backend.Session]. Every session keeps it in the future, also one without members.
func (s *session) Deadline() time.Time {
	s.b.c.lock()
	defer s.b.c.unlock()
	return s.deadline
}

// MaxMargin is half of the TTL. A third is the time between two heartbeats, and half as much
// is left for a slow answer; see [backend.Session].
func (s *session) MaxMargin() time.Duration { return s.TTL() / 2 }

// untilBeat returns the time until the next heartbeat, which is sent a third of the TTL after
// the last one: two in a row may be lost.
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
		// The coordinator handled the heartbeat no earlier than it was sent. So the session
		// lives for at least a TTL from then, however long the answer took.
		beat := kit.NewHeartbeat(time.Since(cl.sent), time.Until(s.deadline))
		s.deadline = cl.sent.Add(s.b.c.ttl)
		for f := range s.tracers {
			go (*f)(beat) // the coordinator is locked
		}
		s.expiry.Reset(time.Until(s.deadline))
		s.next.Reset(s.untilBeat(cl.sent))
	}
	s.beating = cl
}

// TraceHeartbeats implements [backend.Session].
func (s *session) TraceHeartbeats(f func(backend.Heartbeat)) (stop func()) {
	s.b.c.lock()
	defer s.b.c.unlock()
	if s.tracers == nil {
		s.tracers = make(map[*func(backend.Heartbeat)]bool)
	}
	s.tracers[&f] = true
	return func() {
		s.b.c.lock()
		defer s.b.c.unlock()
		delete(s.tracers, &f)
	}
}
