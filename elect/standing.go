package elect

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/unready"
)

// A standing is a member of this candidate, from joining to leaving.
type standing struct {
	e      *Election
	s      backend.Session
	m      backend.Member
	stop   func()         // ends the telling of heartbeats; nil if nobody listens
	lost   atomic.Bool    // the end of the session has been told
	ahead  backend.Member // the one that this one waits for, as was told last
	marked bool           // see mark

	ready    *readiness     // nil for a candidate without Ready
	asking   sync.WaitGroup // what runs for ready
	cancel   func()         // ends that
	recorded bool           // that it is not ready; belongs to what runs, and then to leave
	told     bool           // that it is first and not ready
	newest   uint64         // the last position in the line when it was found that nobody in it can lead instead; 0 before
}

// joined begins the standing of m, and tells of it. What runs for it lasts until leave, also if ctx ends.
func (e *Election) joined(ctx context.Context, s backend.Session, m backend.Member, ready *readiness) *standing {
	e.o.Logger.Info("joined", "key", m.Key, "position", m.Position)
	e.trace(trace.Event{Kind: trace.Joined, Member: m})
	st := &standing{e: e, s: s, m: m, ready: ready}
	if ready != nil {
		asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
		st.cancel = cancel
		st.asking.Go(func() { ready.keepAsking(asking) })
		if unready.Folder(e.name) != "" {
			recording := backoff.Apart(asking)
			st.asking.Go(func() { st.recordReadiness(recording) })
		}
	}
	if e.o.Trace != nil {
		st.stop = s.TraceHeartbeats(func(b backend.Heartbeat) {
			e.trace(trace.Event{Kind: trace.Heartbeat, Member: m, Number: b.Number, TTL: s.TTL(), RoundTrip: b.RoundTrip, Slack: b.Slack})
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
		st.e.trace(trace.Event{Kind: trace.SessionLost, Member: st.m, Err: err})
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
		e.trace(trace.Event{Kind: trace.SessionOpened, TTL: s.TTL()})
	}
}
