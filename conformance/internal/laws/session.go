package laws

import (
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// ended checks that every method of s fails with ErrSessionEnded.
func ended(t *engine.Trial, s backend.Session, m backend.Member) {
	for _, op := range t.Ops(m) {
		ctx, cancel := t.Within(2 * t.Soon())
		t.Go(op.Name+" under an ended session", func() error { return op.Call(ctx, s) }).Returns(t.Soon(), backend.ErrSessionEnded)
		cancel()
	}
}

var sessionRules = []engine.Rule{{
	ID: "L5.same", Title: "a backend has one session at a time",
	Text: "Session returns the same live session again and again, also to four callers at once; two clients have different ones.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		sessions, calls := make([]backend.Session, 4), make([]*engine.Call, 4)
		for i := range calls {
			calls[i] = t.Go("Session", func() error { sessions[i] = a.Live(); return nil })
		}
		s := a.Live()
		for i, call := range calls {
			if call.Returns(t.Soon()); sessions[i] != s {
				t.Fatalf("Session returned two sessions at once")
			}
		}
		if a.Live() != s {
			t.Fatalf("Session returned another session while the first lives")
		}
		if err := s.Err(); err != nil {
			t.Fatalf("Err of a live session is %v", err)
		}
		if engine.Untapped(b.Live()) == engine.Untapped(s) {
			t.Never("two clients share a session")
		}
	},
}, {
	ID: "L5.done", Title: "the end of a session is told",
	Text:  "After the coordinator has ended a leader's session, Done closes after a crash at the latest. Err is nil before, and wraps ErrSessionEnded then; Deadline, where there is one, has passed then. Both for good.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		a := t.Client()
		a.First(a.Join("x"), engine.Now)
		s := a.Live()
		if s.Err() != nil {
			t.Fatalf("Err of a live session is %v", s.Err())
		}
		a.Expires()
		for _, when := range []string{"is over", "is over and the next has begun"} {
			if !engine.Is(s.Err(), backend.ErrSessionEnded) {
				t.Fatalf("Err of a session that %s is %v; want ErrSessionEnded", when, s.Err())
			}
			if d := time.Until(s.Deadline()); d > 0 {
				t.Never("the deadline of a session that %s is %v ahead", when, d)
			}
			a.Live()
		}
	},
}, {
	ID: "L5.fails", Title: "every call fails after the end",
	Text:  "After the coordinator has ended a session, each of its methods fails soon with ErrSessionEnded, before and after the next session has been opened, and does nothing, for half a TTL.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		s, m := a.Live(), a.Join("x")
		a.Expires()
		ended(t, s, m)
		next := a.Join("y")
		ended(t, s, m)
		b.Shows(t.Soon(), next)
		version := b.Line().Version
		t.Always(t.TTL/2, "a call under an ended session was done", func() bool {
			l := b.Line()
			return engine.SameLine(l.Members, []backend.Member{next}) && l.Version == version && (!t.Can(engine.Records) || b.Get(t.Late()).Version == backend.Absent)
		})
	},
}, {
	ID: "L5.blocked", Title: "blocked calls fail at the end",
	Text:  "Gone, WatchLine and Watch that wait when the coordinator ends their session fail with ErrSessionEnded after a crash at the latest. Gone of a member of that session may return nil instead: it has gone.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		own, other := a.Join("x"), b.Join("y")
		gone := a.Gone(own)
		var waits []*engine.Call
		for _, op := range t.Waits(other) {
			waits = append(waits, a.Go(op))
		}
		t.Settles(a)
		a.Inject(engine.Expire)
		gone.Returns(t.Crash(), nil, backend.ErrSessionEnded)
		for _, call := range waits {
			call.Returns(t.Crash(), backend.ErrSessionEnded)
		}
	},
}, {
	ID: "L5.next", Title: "a new session begins with nothing",
	Text:  "After the coordinator has ended a session, Session opens another soon; the old members are gone, the new session joins at the end, and closing the old one disturbs nothing, for a quarter of a TTL.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		old := a.Live()
		a.Join("x")
		other := b.Join("y")
		a.Expires()
		s := a.LiveWithin(t.Recovery())
		if s == old {
			t.Never("Session returned the session that has ended")
		}
		m := a.Join("z")
		b.Shows(t.Soon(), other, m)
		ctx, cancel := t.Within(t.Soon())
		defer cancel()
		old.Close(ctx)
		t.Always(t.TTL/4, "closing an ended session has ended the next, or changed the line", func() bool {
			return s.Err() == nil && engine.SameLine(b.Members(), []backend.Member{other, m})
		})
		if a.Live() != s {
			t.Fatalf("closing an ended session has ended the next: %v", s.Err())
		}
	},
}, {
	ID: "L5.close", Title: "Close ends the session",
	Text: "When Session.Close has returned nil, the session's members are gone for every client, Done is closed, every method fails with ErrSessionEnded, another Close is harmless, and Session opens another.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		s, m := a.Live(), a.Join("x")
		a.Join("y")
		other := b.Join("z")
		a.CloseSession()
		b.Shows(t.Soon(), other)
		if !over(s) || !engine.Is(s.Err(), backend.ErrSessionEnded) {
			t.Fatalf("after Close, Done is not closed or Err is %v", s.Err())
		}
		ended(t, s, m)
		ctx, cancel := t.Within(t.Soon())
		defer cancel()
		s.Close(ctx)
		next := a.Join("new")
		b.Shows(t.Soon(), other, next)
	},
}, {
	ID: "L5.queue", Title: "nothing queued runs under the next session",
	Text:  "A client is cut off and calls Join, Leave, Pin and a guarded Put with contexts that do not end. When its session must have ended it is healed: each call returns after recovery with an error, and under the next session nobody stands in line who was not joined there, and nothing was written.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		s, m := a.Live(), a.Join("x")
		going := b.Gone(m)
		before := a.Line().Version
		heal := a.Inject(engine.Cut)
		queue := func(op engine.Op) *engine.Call {
			return t.Go(op.Name+", queued under a session that ended,", func() error { return op.Call(t.Ctx, s) })
		}
		leaving := queue(engine.Leave(m))
		var calls []*engine.Call
		for _, op := range t.Changes(m) {
			calls = append(calls, queue(op))
		}
		going.Returns(t.Crash())
		heal()
		leaving.Returns(t.Recovery(), nil, backend.ErrSessionEnded, backend.ErrUnavailable)
		for _, call := range calls {
			call.Returns(t.Recovery(), backend.ErrSessionEnded, backend.ErrUnavailable)
		}
		a.LiveWithin(t.Recovery())
		next := a.Join("y")
		b.Shows(t.Soon(), next)
		t.Always(t.TTL/2, "a queued call was done under the next session", func() bool {
			l := b.Line()
			return engine.SameLine(l.Members, []backend.Member{next}) && l.Version == before
		})
		b.WroteNothing("queued under a session that ended")
	},
}}

// over reports whether the session's Done is closed.
func over(s backend.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}
