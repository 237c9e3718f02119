package laws

import (
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/header"
)

// staysPassed cuts the client off until the deadline of its session has passed, and heals it
// at that moment. It checks that the deadline stays passed. If the session ends, the client
// opens the next one.
func staysPassed(t *engine.Trial, c *engine.Client) {
	s := c.Live()
	heal := c.Inject(engine.Cut)
	t.Eventually(t.TTL+t.Soon(), "the deadline of a leader that is cut off has not passed", func() bool {
		return time.Until(s.Deadline()) <= 0
	})
	heal()
	next := false
	t.Always(t.TTL, "a deadline that had passed while somebody led was revived", func() bool {
		if over(s) && !next {
			next = true
			c.LiveWithin(t.Recovery())
		}
		return time.Until(s.Deadline()) <= 0
	})
}

// deadlineNow returns a session's deadline to within Grain. It reads again if a reading took
// too long, as on a busy machine, because it is then less exact.
func deadlineNow(s backend.Session) time.Time {
	for {
		began := time.Now()
		if d := s.Deadline(); time.Since(began) < engine.Grain/2 {
			return d
		}
	}
}

var deadlineRules = []engine.Rule{{
	ID: "L6.ttl", Title: "TTL and Deadline agree",
	Text: "TTL is positive and Deadline of a leader is not zero; or both are zero, and the backend counts as one that lacks Deadlines. The TTL is at most that of the harness.",
	Check: func(t *engine.Trial) {
		a := t.Client()
		a.First(a.Join("x"), engine.Now)
		s := a.Live()
		timed := t.Can(engine.Deadlines)
		switch ttl, d := s.TTL(), s.Deadline(); {
		case timed && (ttl <= 0 || d.IsZero()):
			t.Fatalf("TTL is %v and Deadline %v; a coordinator whose sessions have no time lacks Deadlines", ttl, d)
		case !timed && (ttl != 0 || !d.IsZero()):
			t.Fatalf("the harness lacks Deadlines, and TTL is %v and Deadline %v", ttl, d)
		case ttl > t.TTL:
			t.Fatalf("TTL is %v; Harness.TTL, by which the suite waits, is %v", ttl, t.TTL)
		}
	},
}, {
	ID: "L6.bound", Title: "the deadline is at most a TTL away",
	Text:  "When Ahead has said First, and ever after for two TTL, Deadline is in the future and not more than TTL away.",
	Needs: []engine.Fault{engine.Deadlines}, Check: func(t *engine.Trial) {
		a := t.Client()
		a.First(a.Join("x"), engine.Now)
		s := a.Live()
		t.Always(2*t.TTL, "the deadline of a healthy leader is in the past, or more than TTL away", func() bool {
			left := time.Until(s.Deadline())
			if left <= 0 || left > s.TTL()+engine.Grain {
				t.Log("a", "deadline in %v", left)
				return false
			}
			return true
		})
	},
}, {
	ID: "L6.advances", Title: "the deadline moves ahead for the first two",
	Text:  "For two TTL, Deadline of a leader and of its heir never moves back, stays ahead, and at the end is at least one TTL later than in the beginning.",
	Needs: []engine.Fault{engine.Deadlines}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		first, second := a.Join("x"), b.Join("y")
		a.First(first, engine.Now)
		b.Behind(second, first)
		sessions := []backend.Session{a.Live(), b.Live()}
		began := []time.Time{sessions[0].Deadline(), sessions[1].Deadline()}
		// A session may begin to extend the deadline only when it knows that its member is heir.
		t.Eventually(t.TTL, "the heir's deadline is not ahead", func() bool { return time.Until(sessions[1].Deadline()) > 0 })
		last := make([]time.Time, 2)
		t.Always(2*t.TTL, "a deadline moved back, or passed, while all was well", func() bool {
			for i, s := range sessions {
				d := deadlineNow(s)
				if d.Before(last[i].Add(-engine.Grain)) || time.Until(d) <= 0 {
					t.Log([]string{"a", "b"}[i], "deadline in %v, before that %v later", time.Until(d), last[i].Sub(d))
					return false
				}
				last[i] = d
			}
			return true
		})
		for i := range last {
			if d := last[i].Sub(began[i]); d < t.TTL {
				t.Fatalf("the deadline moved by %v in two TTL", d)
			}
		}
	},
}, {
	ID: "L6.heartbeats", Title: "who traces heartbeats is told of them",
	Text:  "TraceHeartbeats of a leader's session calls its func within two TTL, with a RoundTrip and a Slack of at most TTL, and no more soon after it was stopped.",
	Needs: []engine.Fault{engine.Deadlines}, Check: func(t *engine.Trial) {
		a := t.Client()
		a.First(a.Join("x"), engine.Now)
		s := a.Live()
		var stopped atomic.Bool
		told, late := make(chan backend.Heartbeat, 1), make(chan backend.Heartbeat, 1)
		stop := s.TraceHeartbeats(func(h backend.Heartbeat) {
			to := told
			if stopped.Load() {
				to = late
			}
			select {
			case to <- h:
			default:
			}
		})
		defer stop()
		var first backend.Heartbeat
		t.Eventually(2*t.TTL, "no heartbeat was told of", func() bool {
			select {
			case first = <-told:
				return true
			default:
				return false
			}
		})
		if first.RoundTrip < 0 || first.RoundTrip > t.TTL || first.Slack < 0 || first.Slack > t.TTL {
			t.Fatalf("a heartbeat took %v, and came %v before the deadline; the session time is %v", first.RoundTrip, first.Slack, t.TTL)
		}
		stop()
		t.Pass(t.TTL/4, "a call may be under way")
		stopped.Store(true)
		t.Always(t.TTL, "a heartbeat was told of after the trace was stopped", func() bool { return len(late) == 0 })
	},
}, {
	ID: "L6.cut", Title: "a leader's deadline passes before another leads",
	Text:  "A leader is cut off. When Ahead says First to the next in line, which it does after a crash, the old leader's deadline has passed, and it is no later than TTL after the cut. Three times, at other moments between heartbeats.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines}, Check: func(t *engine.Trial) {
		for i := range 3 {
			a, b := t.Client(), t.Client()
			s := a.Live()
			m := a.Join("x")
			next := b.Join("y")
			a.First(m, engine.Now)
			t.Pass(time.Duration(i)*t.TTL/7, "so that the cut comes at another moment between heartbeats")
			a.Inject(engine.Cut)
			cutAt := time.Now()
			b.First(next, t.Crash())
			now, d := time.Now(), s.Deadline()
			if d.After(now) {
				t.Never("another leads, and the deadline of the leader that is cut off is %v ahead", d.Sub(now))
			}
			if d.After(cutAt.Add(t.TTL + engine.Grain)) {
				t.Fatalf("the deadline is %v after the cut, more than TTL", d.Sub(cutAt))
			}
			b.Leave(next)
		}
	},
}, {
	ID: "L6.kept", Title: "a short cut does not end a term",
	Text:  "A leader is cut off for a tenth of TTL and healed, five times. Its deadline never passes, its session lives, and it is still first.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines}, Check: func(t *engine.Trial) {
		a := t.Client()
		m := a.Join("x")
		a.First(m, engine.Now)
		s := a.Live()
		for range 5 {
			heal := a.Inject(engine.Cut)
			t.Always(t.TTL/10, "the deadline passed within a tenth of TTL", func() bool { return time.Until(s.Deadline()) > 0 })
			heal()
			t.Always(t.TTL/2, "the deadline passed after a short cut", func() bool { return time.Until(s.Deadline()) > 0 })
		}
		if a.Live() != s {
			t.Fatalf("the session did not live on")
		}
		a.First(m, engine.Now)
	},
}, {
	ID: "L6.late", Title: "a late answer does not revive a deadline",
	Text:  "A leader is cut off until its deadline has passed, and healed at that moment: what it sent before arrives and is answered. The deadline of that session stays in the past for a TTL; where the session ends, also after the next has begun.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines}, Check: func(t *engine.Trial) {
		a := t.Client()
		a.First(a.Join("x"), engine.Now)
		staysPassed(t, a)
	},
}, {
	ID: "L6.gate", Title: "who stands behind a gate has a leader's deadline",
	Text:  "The first member is pinned, and the record names it as a migration's gate. When Ahead has answered who stands second, its deadline is ahead and stays so for a TTL. It is cut off until the deadline has passed, and healed at that moment: the deadline stays in the past as L6.late has it.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines, engine.Pins}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		gate := a.Join("gate")
		a.First(gate, engine.Now)
		a.Pin(gate, func(h *header.Header) { h.Migration.Gate = gate.Position })
		m := b.Join("behind")
		b.Behind(m, gate)
		s := b.Live()
		t.Always(t.TTL, "the deadline of who stands behind the gate is not ahead", func() bool { return time.Until(s.Deadline()) > 0 })
		staysPassed(t, b)
	},
}, {
	ID: "L6.ended", Title: "the deadline of an ended session has passed",
	Text:  "A leader's session is closed. When the next in line leads, which may be before Close has returned, its deadline has passed, and it stays so for a TTL. Three times.",
	Needs: []engine.Fault{engine.Deadlines}, Check: func(t *engine.Trial) {
		for range 3 {
			a, b := t.Client(), t.Client()
			m, next := a.Join("x"), b.Join("y")
			a.First(m, engine.Now)
			s := a.Live()
			closed := a.Go(engine.Close())
			b.First(next, t.Soon())
			t.Always(t.TTL, "the deadline of a session that was closed is ahead", func() bool { return time.Until(s.Deadline()) <= 0 })
			closed.Returns(t.Soon())
			b.Leave(next)
		}
	},
}, {
	ID: "L6.old-answer", Title: "the deadline counts from when a request was sent",
	Text:  "The answers to a leader are held back for half a TTL and more while its requests arrive, then they arrive all at once, and the leader is cut off before it hears more. When the next in line leads, the leader's deadline has passed. Three times.",
	Needs: []engine.Fault{engine.Deafen, engine.Cut, engine.Deadlines}, Check: func(t *engine.Trial) {
		for i := range 3 {
			a, b := t.Client(), t.Client()
			m, next := a.Join("x"), b.Join("y")
			a.First(m, engine.Now)
			s := a.Live()
			heal := a.Inject(engine.Deafen)
			t.Pass(t.TTL/2+time.Duration(i)*t.TTL/8, "so that answers become old")
			last := t.Go("Get", func() error { return engine.Get(t.Name).Call(t.Ctx, s) })
			t.Pass(t.Tick(), "in which the request arrives")
			heal()
			engine.Await(t, last.Result(), t.Soon(), "an answer that was held back has not come")
			a.Inject(engine.Cut) // at once, before the answer to a new request moves the deadline
			b.First(next, t.Crash())
			if d := time.Until(s.Deadline()); d > 0 {
				t.Never("another leads, and the deadline of the leader that is cut off is %v ahead", d)
			}
			b.Leave(next)
		}
	},
}}
