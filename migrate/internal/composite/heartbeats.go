package composite

import (
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A tracer is a func that is told of the heartbeats of a session.
type tracer struct {
	f     func(backend.Heartbeat)
	stops [2]func() // stop the trace of each part; nil if a part is not traced
}

// TraceHeartbeats tells of the heartbeats of both coordinators, but only of a coordinator whose
// deadline counts at that moment: of both while the session leads by both. The Slack of a heartbeat
// is about the Deadline of its own coordinator; see [session.counts] and [backend.Session].
func (s *session) TraceHeartbeats(f func(backend.Heartbeat)) (stop func()) {
	t := &tracer{f: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracers[t] = true
	for sd := range s.parts {
		s.trace(t, protocol.Side(sd))
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.tracers, t)
		for _, stop := range t.stops {
			if stop != nil {
				stop()
			}
		}
	}
}

// trace makes the present part with one coordinator tell t. The caller holds mu.
func (s *session) trace(t *tracer, sd protocol.Side) {
	if s.parts[sd] == nil {
		return
	}
	t.stops[sd] = s.parts[sd].TraceHeartbeats(func(b backend.Heartbeat) {
		s.mu.Lock()
		counts := s.counts()[sd]
		s.mu.Unlock()
		if counts {
			t.f(b)
		}
	})
}

// traceFrom makes a new part with From tell all tracers of the session. The part before has ended,
// and tells nothing. The caller holds mu.
func (s *session) traceFrom() {
	for t := range s.tracers {
		s.trace(t, protocol.From)
	}
}
