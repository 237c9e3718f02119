package conformance

import (
	"time"

	"github.com/succession-dev/succession/backend"
)

// grows wins a term for c, resigns it, and checks that its token is above last.
func (c *client) grows(last uint64, d time.Duration) uint64 {
	ctx, cancel := c.t.within(d)
	defer cancel()
	term, err := c.stand(ctx, c.elect())
	if err != nil {
		c.t.fatalf("%s: Campaign: %v", c.name, err)
	}
	defer term.Resign(ctx)
	if term.Token() <= last {
		c.t.fatalf("%s: the token is %d, and was %d before", c.name, term.Token(), last)
	}
	return term.Token()
}

var tokenRules = []Rule{{
	ID:    "G2.sessions",
	Title: "tokens grow over sessions",
	Text:  "Two clients lead in turn, each term under a new session, and again under the same; an election that was empty in between included. Each token is larger than the one before.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		last := uint64(0)
		for i := range 8 {
			last = a.grows(last, t.h.soon())
			if i%2 == 0 {
				a.closeSession()
			}
			a, b = b, a
		}
	},
}, {
	ID:    "G2.clients",
	Title: "tokens grow over clients",
	Text:  "Five clients in turn are opened, lead once and are closed. Each token is larger than the one before.",
	check: func(t *trial) {
		last := uint64(0)
		for range 5 {
			c := t.client()
			last = c.grows(last, t.h.soon())
			if err := c.Close(); err != nil {
				t.fatalf("Close: %v", err)
			}
		}
	},
}, {
	ID:    "G2.known",
	Title: "the token is the member's and does not change",
	Text:  "The token of a term is the token that every client computes from the line, and it is the same from winning until the end, whatever is written to the election's record meanwhile.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		b.put(t.line+"-r", "x", nil) // so that no position is the first
		b.leave(b.join("x"))
		term := a.campaign()
		want := term.Token()
		l := b.lineNow()
		t.poll(t.h.soon(), "another client sees the leader", func() bool { l = b.lineNow(); return len(l.Members) == 1 })
		if got := l.Token(l.Members[0]); got != want {
			t.fatalf("another client takes the token for %d; the leader has %d", got, want)
		}
		b.raise(100)
		t.steady(t.h.TTL/10, "the token changed, or the term ended, when the fence was raised", func() bool {
			return term.Token() == want && term.Check() == nil
		})
	},
}, {
	ID:    "G2.drop",
	Title: "tokens grow when the election is deleted",
	Text:  "An operator deletes the whole election, empty and while somebody leads, three times each. Each later token is larger.",
	Needs: []Fault{Drop},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		last := uint64(0)
		for range 3 {
			last = a.grows(last, t.h.soon())
			t.drop()
			last = b.grows(last, t.h.recovery())
			term := await(t, a.campaigns(t.ctx).won, t.h.soon(), "Campaign has not won")
			if term.Token() <= last {
				t.fatalf("the token is %d, and was %d before", term.Token(), last)
			}
			last = term.Token()
			t.drop()
			last = b.grows(last, t.h.recovery())
			term.Resign(t.ctx)
		}
	},
}, {
	ID:    "G2.fence-drop",
	Title: "a raised fence outlives the election",
	Text:  "After RaiseFence, an operator deletes the whole election, empty and while somebody leads. Each later token is above the floor, and larger than the one before.",
	Needs: []Fault{Drop, Records},
	check: func(t *trial) {
		const floor = 1 << 40
		a, b := t.client(), t.client()
		if err := a.elect().RaiseFence(t.ctx, floor); err != nil {
			t.fatalf("RaiseFence: %v", err)
		}
		t.drop()
		last := b.grows(floor, t.h.recovery())
		term := await(t, a.campaigns(t.ctx).won, t.h.soon(), "Campaign has not won")
		t.drop()
		last = b.grows(max(last, term.Token()), t.h.recovery())
		term.Resign(t.ctx)
		a.grows(last, t.h.recovery())
	},
}, {
	ID:    "G2.restart",
	Title: "tokens grow over restarts",
	Text:  "The coordinator is restarted between terms, three times, with an empty election. Each later token is larger.",
	Needs: []Fault{Restart},
	check: func(t *trial) {
		a := t.client()
		last := uint64(0)
		for range 3 {
			last = a.grows(last, t.h.recovery())
			t.restart()
			last = a.grows(last, t.h.recovery())
		}
	},
}, {
	ID:    "G2.reset",
	Title: "tokens do not fall in silence",
	Text:  "The coordinator is rebuilt empty, and its log begins again. A client that knew it before is told ErrReset after recovery, by Session or a later call; until then no member that it joins has an earlier position than before.",
	Needs: []Fault{Reset},
	check: func(t *trial) {
		a := t.client()
		last := backend.Member{}
		for range 20 {
			last = a.join("x")
			a.leave(last)
		}
		t.reset()
		t.poll(t.h.recovery(), "a client that knew the coordinator before is told ErrReset", func() bool {
			ctx, cancel := t.within(t.h.recovery())
			defer cancel()
			s, err := a.Session(ctx)
			if err != nil {
				return is(err, backend.ErrReset)
			}
			m, err := s.Join(ctx, t.line, "x")
			if err == nil && m.Position <= last.Position {
				t.fatalf("after the coordinator was rebuilt, %s joined; before, %s had", show(m), show(last))
			}
			return is(err, backend.ErrReset)
		})
	},
}, {
	ID:    "G2.fence",
	Title: "RaiseFence lifts every later token",
	Text:  "After RaiseFence, who wins next has a token above the floor, who stood in line before included; raising to less changes nothing; the leader of the time keeps its token.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b, c := t.client(), t.client(), t.client()
		term := a.campaign()
		next := b.campaigns(t.ctx)
		floor := term.Token() + 1_000_000
		for _, f := range []uint64{floor, 1} {
			if err := c.elect().RaiseFence(t.ctx, f); err != nil {
				t.fatalf("RaiseFence: %v", err)
			}
		}
		if term.Check() != nil || term.Token() >= floor {
			t.fatalf("RaiseFence disturbed the leader: token %d, %v", term.Token(), term.Check())
		}
		term.Resign(t.ctx)
		second := next.wins(t.h.soon())
		if second.Token() <= floor {
			t.fatalf("the token is %d after the fence was raised to %d", second.Token(), floor)
		}
		second.Resign(t.ctx)
		c.grows(second.Token(), t.h.soon())
	},
}}
