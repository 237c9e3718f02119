package conformance

import (
	"time"

	"github.com/succession-dev/succession/backend"
)

// grain is how much two readings of one deadline may differ: it is converted to
// the clock of time.Now anew at each call.
const grain = 5 * time.Millisecond

// staysPassed cuts the client off until the deadline of its session has passed, and heals
// at that moment. Where the session ends, the client opens the next.
func (c *client) staysPassed(s backend.Session) {
	heal := c.cut()
	c.t.poll(c.t.h.TTL+c.t.h.soon(), "the deadline of a leader that is cut off has not passed", func() bool {
		return time.Until(s.Deadline()) <= 0
	})
	heal()
	next := false
	c.t.steady(c.t.h.TTL, "a deadline that had passed while somebody led was revived", func() bool {
		if over(s) && !next {
			next = true
			c.liveWithin(c.t.h.recovery())
		}
		return time.Until(s.Deadline()) <= 0
	})
}

// deadlineNow returns a session's deadline to within grain. A reading may take longer on
// a machine that is busy with something else, and says less then.
func deadlineNow(s backend.Session) time.Time {
	for {
		began := time.Now()
		if d := s.Deadline(); time.Since(began) < grain/2 {
			return d
		}
	}
}

var deadlineRules = []Rule{{
	ID:    "L6.ttl",
	Title: "TTL and Deadline agree",
	Text:  "TTL is positive and Deadline of a leader is not zero; or both are zero, which a harness declares by lacking Deadlines. The TTL is at most that of the harness.",
	check: func(t *trial) {
		a := t.client()
		a.leads(a.join("x"))
		s := a.live()
		timed := t.h.can(Deadlines)
		switch ttl, d := s.TTL(), s.Deadline(); {
		case timed && (ttl <= 0 || d.IsZero()):
			t.fatalf("TTL is %v and Deadline %v; a coordinator whose sessions have no time lacks Deadlines", ttl, d)
		case !timed && (ttl != 0 || !d.IsZero()):
			t.fatalf("the harness lacks Deadlines, and TTL is %v and Deadline %v", ttl, d)
		case ttl > t.h.TTL:
			t.fatalf("TTL is %v; Harness.TTL, by which the suite waits, is %v", ttl, t.h.TTL)
		}
	},
}, {
	ID:    "L6.bound",
	Title: "the deadline is at most a TTL away",
	Text:  "When Ahead has said First, and ever after for two TTL, Deadline is in the future and not more than TTL away.",
	Needs: []Fault{Deadlines},
	check: func(t *trial) {
		a := t.client()
		a.leads(a.join("x"))
		s := a.live()
		t.steady(2*t.h.TTL, "the deadline of a healthy leader is in the past, or more than TTL away", func() bool {
			left := time.Until(s.Deadline())
			if left <= 0 || left > s.TTL()+grain {
				t.log.add("a", "deadline in %v", left)
				return false
			}
			return true
		})
	},
}, {
	ID:    "L6.advances",
	Title: "the deadline moves ahead for the first two",
	Text:  "For two TTL, Deadline of a leader and of its heir never moves back, stays ahead, and at the end is at least one TTL later than in the beginning.",
	Needs: []Fault{Deadlines},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		first, second := a.join("x"), b.join("y")
		a.leads(first)
		b.behind(second, first)
		sessions := []backend.Session{a.live(), b.live()}
		began := []time.Time{sessions[0].Deadline(), sessions[1].Deadline()}
		// An heir's deadline may start to be kept when it has learnt that it is heir.
		t.poll(t.h.TTL, "the heir's deadline is not ahead", func() bool { return time.Until(sessions[1].Deadline()) > 0 })
		last := make([]time.Time, 2)
		t.steady(2*t.h.TTL, "a deadline moved back, or passed, while all was well", func() bool {
			for i, s := range sessions {
				d := deadlineNow(s)
				if d.Before(last[i].Add(-grain)) || time.Until(d) <= 0 {
					t.log.add([]string{"a", "b"}[i], "deadline in %v, before that %v later", time.Until(d), last[i].Sub(d))
					return false
				}
				last[i] = d
			}
			return true
		})
		for i := range last {
			if d := last[i].Sub(began[i]); d < t.h.TTL {
				t.fatalf("the deadline moved by %v in two TTL", d)
			}
		}
	},
}, {
	ID:    "L6.cut",
	Title: "a leader's deadline passes before another leads",
	Text:  "A leader is cut off. When Ahead says First to the next in line, which it does after a crash, the old leader's deadline has passed, and it is no later than TTL after the cut. Three times, at other moments between heartbeats.",
	Needs: []Fault{Cut, Deadlines},
	check: func(t *trial) {
		for i := range 3 {
			a, b := t.client(), t.client()
			m := a.join("x")
			next := b.join("y")
			a.leads(m)
			t.pass(time.Duration(i)*t.h.TTL/7, "so that the cut comes at another moment between heartbeats")
			s := a.live()
			a.cut()
			cutAt := time.Now()
			b.comesFirst(next, t.h.crash())
			now, d := time.Now(), s.Deadline()
			if d.After(now) {
				t.fatalf("another leads, and the deadline of the leader that is cut off is %v ahead", d.Sub(now))
			}
			if d.After(cutAt.Add(t.h.TTL + grain)) {
				t.fatalf("the deadline is %v after the cut, more than TTL", d.Sub(cutAt))
			}
			b.leave(next)
		}
	},
}, {
	ID:    "L6.kept",
	Title: "a short cut does not end a term",
	Text:  "A leader is cut off for a tenth of TTL and healed, five times. Its deadline never passes, its session lives, and it is still first.",
	Needs: []Fault{Cut, Deadlines},
	check: func(t *trial) {
		a := t.client()
		m := a.join("x")
		a.leads(m)
		s := a.live()
		for range 5 {
			heal := a.cut()
			t.steady(t.h.TTL/10, "the deadline passed within a tenth of TTL", func() bool { return time.Until(s.Deadline()) > 0 })
			heal()
			t.steady(t.h.TTL/2, "the deadline passed after a short cut", func() bool { return time.Until(s.Deadline()) > 0 })
		}
		if a.live() != s {
			t.fatalf("the session did not live on")
		}
		a.leads(m)
	},
}, {
	ID:    "L6.late",
	Title: "a late answer does not revive a deadline",
	Text:  "A leader is cut off until its deadline has passed, and healed at that moment: what it sent before arrives and is answered. The deadline of that session stays in the past for a TTL; where the session ends, also after the next has begun.",
	Needs: []Fault{Cut, Deadlines},
	check: func(t *trial) {
		a := t.client()
		a.leads(a.join("x"))
		a.staysPassed(a.live())
	},
}, {
	ID:    "L6.gate",
	Title: "who stands behind a gate has a leader's deadline",
	Text:  "The first member is pinned, and the record names it as a migration's gate. When Ahead has answered who stands second, its deadline is ahead and stays so for a TTL. It is cut off until the deadline has passed, and healed at that moment: the deadline stays in the past as L6.late has it.",
	Needs: []Fault{Cut, Deadlines, Pins},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		gate := a.join("gate")
		a.leads(gate)
		l := a.lineNow()
		l.Header.Migration.Gate = gate.Position
		a.pin(gate, l.Header, l.Version)
		m := b.join("behind")
		b.behind(m, gate)
		s := b.live()
		t.steady(t.h.TTL, "the deadline of who stands behind the gate is not ahead", func() bool { return time.Until(s.Deadline()) > 0 })
		b.staysPassed(s)
	},
}, {
	ID:    "L6.ended",
	Title: "the deadline of an ended session has passed",
	Text:  "A leader's session is closed. When the next in line leads, which may be before Close has returned, its deadline has passed, and it stays so for a TTL. Three times.",
	Needs: []Fault{Deadlines},
	check: func(t *trial) {
		for range 3 {
			a, b := t.client(), t.client()
			m, next := a.join("x"), b.join("y")
			a.leads(m)
			s := a.live()
			closed := t.async(func() error { return s.Close(t.ctx) })
			b.comesFirst(next, t.h.soon())
			t.steady(t.h.TTL, "the deadline of a session that was closed is ahead", func() bool { return time.Until(s.Deadline()) <= 0 })
			if err := await(t, closed, t.h.soon(), "Close has not returned"); err != nil {
				t.fatalf("Close: %v", err)
			}
			b.leave(next)
		}
	},
}, {
	ID:    "L6.old-answer",
	Title: "the deadline counts from when a request was sent",
	Text:  "The answers to a leader are held back for half a TTL and more while its requests arrive, then they arrive all at once, and the leader is cut off before it hears more. When the next in line leads, the leader's deadline has passed. Three times.",
	Needs: []Fault{Deafen, Cut, Deadlines},
	check: func(t *trial) {
		for i := range 3 {
			a, b := t.client(), t.client()
			m, next := a.join("x"), b.join("y")
			a.leads(m)
			s := a.live()
			heal := a.deafen()
			t.pass(t.h.TTL/2+time.Duration(i)*t.h.TTL/8, "so that answers become old")
			last := t.async(func() error { _, err := s.Get(t.ctx, t.line); return err })
			t.breathe()
			heal()
			await(t, last, t.h.soon(), "an answer that was held back has not come")
			a.cut() // at once: the answer to a new request would be a young one
			b.comesFirst(next, t.h.crash())
			if d := time.Until(s.Deadline()); d > 0 {
				t.fatalf("another leads, and the deadline of the leader that is cut off is %v ahead", d)
			}
			b.leave(next)
		}
	},
}}
