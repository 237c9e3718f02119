package elect

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/unready"
)

// A standing is a member of this candidate, from joining to leaving.
type standing struct {
	e      *Election
	s      backend.Session
	m      backend.Member
	margin time.Duration
	once   bool             // the candidate does not wait: it fails with [ErrNotFirst] behind another member
	wait   *backoff.Backoff // the pauses of its campaign

	unfenced error          // why the fence is not known to be restored, or nil
	ahead    backend.Member // the member that m waits for, as it was last traced
	marked   bool           // see mark
	stop     func()         // stops the trace of heartbeats; nil if nothing is traced
	lost     atomic.Bool    // whether the end of the session has been traced

	notes string         // of the newest header
	noted *header.Header // what they say; shared, and not to be changed

	ready    *readiness     // nil for a candidate without Ready
	asking   sync.WaitGroup // the goroutines that run for ready
	cancel   func()         // ends these goroutines
	recorded bool           // whether there is a record that m is not ready; used by those goroutines, and after them by leave
	doubt    bool           // whether there is one is not known, as an answer was lost; used as recorded is
	told     bool           // whether it was logged that m is first and not ready
	newest   uint64         // the last position in the line when nobody in it could lead instead; 0 before
}

// joined tells that m has joined, and starts what runs for it, which lasts until leave, also if ctx ends.
func (st *standing) joined(ctx context.Context) {
	e, s, m, ready := st.e, st.s, st.m, st.ready
	e.o.Logger.Info("joined", "key", m.Key, "position", m.Position)
	e.trace(trace.Event{Kind: trace.Joined, Member: m})
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
}

// noNotes is what most headers note.
var noNotes header.Header

// read sets noted to what the header notes. It fails if that cannot be understood.
func (st *standing) read(h *backend.Header) error {
	if h.Notes == st.notes {
		return nil
	}
	noted, err := header.Of(*h)
	if err != nil {
		return err
	}
	st.notes, st.noted = h.Notes, &noted
	return nil
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

// tellSession traces s, unless this candidate has used it before.
func (e *Election) tellSession(s backend.Session) {
	if e.o.Trace == nil {
		return
	}
	done := s.Done() // it stays the same for a session that is wrapped anew for each caller
	e.mu.Lock()
	known := e.newest == done
	e.newest = done
	e.mu.Unlock()
	if !known {
		e.trace(trace.Event{Kind: trace.SessionOpened, TTL: s.TTL()})
	}
}
