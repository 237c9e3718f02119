package elect

import (
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
)

// A standing is a member of this candidate, from joining to leaving.
type standing struct {
	e    *Election
	s    backend.Session
	m    backend.Member
	stop func()      // ends the telling of heartbeats; nil if nobody listens
	lost atomic.Bool // the end of the session has been told
}

// joined begins the standing of m, and tells of it.
func (e *Election) joined(s backend.Session, m backend.Member) *standing {
	e.o.Logger.Info("joined", "key", m.Key, "position", m.Position)
	e.trace(Event{Kind: Joined, Member: m})
	st := &standing{e: e, s: s, m: m}
	if h, ok := s.(backend.HeartbeatTracer); ok && e.o.Trace != nil {
		st.stop = h.TraceHeartbeats(func(b backend.Heartbeat) {
			e.trace(Event{Kind: Heartbeat, Member: m, RoundTrip: b.RoundTrip, Slack: b.Slack})
		})
	}
	return st
}

// tellLost tells that the session has ended, if it has.
func (st *standing) tellLost() {
	if st.e.o.Trace == nil {
		return
	}
	if err := st.s.Err(); err != nil && st.lost.CompareAndSwap(false, true) {
		st.e.trace(Event{Kind: SessionLost, Member: st.m, Err: err})
	}
}

// tellSession tells of s, unless this candidate has used it before.
func (e *Election) tellSession(s backend.Session) {
	if e.o.Trace == nil {
		return
	}
	done := s.Done() // a session that is wrapped anew for each caller has the same
	e.mu.Lock()
	known := e.newest == done
	e.newest = done
	e.mu.Unlock()
	if !known {
		e.trace(Event{Kind: SessionOpened, TTL: s.TTL()})
	}
}
