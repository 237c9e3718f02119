package guarantees

import (
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// grows wins a term for c, checks that its token is larger than last, and resigns it.
func grows(t *engine.Trial, c *engine.Client, last uint64, d time.Duration) uint64 {
	ctx, cancel := t.Within(d)
	defer cancel()
	term, err := c.Campaign(ctx)
	t.Want(c.Name+": Campaign", err)
	defer term.Resign(ctx)
	if term.Token() <= last {
		t.Never("%s: the token is %d, and was %d before", c.Name, term.Token(), last)
	}
	return term.Token()
}

var tokenRules = []engine.Rule{{
	ID: "G2.sessions", Title: "tokens grow over sessions",
	Text: "Two clients lead in turn, each term under a new session, and again under the same; an election that was empty in between included. Each token is larger than the one before.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		last := uint64(0)
		for i := range 8 {
			last = grows(t, a, last, t.Soon())
			if i%2 == 0 {
				a.CloseSession()
			}
			a, b = b, a
		}
	},
}, {
	ID: "G2.clients", Title: "tokens grow over clients",
	Text: "Five clients in turn are opened, lead once and are closed. Each token is larger than the one before.",
	Check: func(t *engine.Trial) {
		last := uint64(0)
		for range 5 {
			c := t.Client()
			last = grows(t, c, last, t.Soon())
			c.Closes()
		}
	},
}, {
	ID: "G2.known", Title: "the token is the member's and does not change",
	Text:  "The token of a term is the token that every client computes from the line, and it is the same from winning until the end, whatever is written to the election's record meanwhile.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		b.Put(t.Name+"-r", "x", nil) // so that no position is the first
		b.Leave(b.Join("x"))
		term := a.Leads()
		want := term.Token()
		l := b.Line()
		t.Eventually(t.Soon(), "another client sees the leader", func() bool { l = b.Line(); return len(l.Members) == 1 })
		if got := l.Token(l.Members[0]); got != want {
			t.Fatalf("another client takes the token for %d; the leader has %d", got, want)
		}
		b.PutFence(100)
		t.Always(t.TTL/10, "the token changed, or the term ended, when the fence was raised", func() bool {
			return term.Token() == want && term.Check() == nil
		})
	},
}, {
	ID: "G2.drop", Title: "tokens grow when the election is deleted",
	Text:  "An operator deletes the whole election, empty and while somebody leads, three times each. Each later token is larger.",
	Needs: []engine.Fault{engine.Drop}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		last := uint64(0)
		for range 3 {
			last = grows(t, a, last, t.Soon())
			t.Drop(t.Name)
			last = grows(t, b, last, t.Recovery())
			term := a.Leads()
			if term.Token() <= last {
				t.Never("the token is %d, and was %d before", term.Token(), last)
			}
			last = term.Token()
			t.Drop(t.Name)
			last = grows(t, b, last, t.Recovery())
			term.Resign(t.Ctx)
		}
	},
}, {
	ID: "G2.fence-drop", Title: "a raised fence outlives the election",
	Text:  "After RaiseFence, an operator deletes the whole election, empty and while somebody leads. Each later token is above the floor, and larger than the one before.",
	Needs: []engine.Fault{engine.Drop, engine.Records}, Check: func(t *engine.Trial) {
		const floor = 1 << 40
		a, b := t.Client(), t.Client()
		t.Want("RaiseFence", a.Elect().RaiseFence(t.Ctx, floor))
		t.Drop(t.Name)
		last := grows(t, b, floor, t.Recovery())
		term := a.Leads()
		t.Drop(t.Name)
		last = grows(t, b, max(last, term.Token()), t.Recovery())
		term.Resign(t.Ctx)
		grows(t, a, last, t.Recovery())
	},
}, {
	ID: "G2.restart", Title: "tokens grow over restarts",
	Text:  "The coordinator is restarted between terms, three times, with an empty election. Each later token is larger.",
	Needs: []engine.Fault{engine.Restart}, Check: func(t *engine.Trial) {
		a := t.Client()
		last := uint64(0)
		for range 3 {
			last = grows(t, a, last, t.Recovery())
			t.Inject(engine.Restart)
			last = grows(t, a, last, t.Recovery())
		}
	},
}, {
	ID: "G2.reset", Title: "tokens do not fall in silence",
	Text:  "The coordinator is rebuilt empty, and its log begins again. A client that knew it before is told ErrReset after recovery, by Session or a later call; until then no member that it joins has an earlier position than before.",
	Needs: []engine.Fault{engine.Reset}, Check: func(t *engine.Trial) {
		a := t.Client()
		last := backend.Member{}
		for range 20 {
			last = a.Join("x")
			a.Leave(last)
		}
		t.Inject(engine.Reset)
		t.Eventually(t.Recovery(), "a client that knew the coordinator before is told ErrReset", func() bool {
			ctx, cancel := t.Within(t.Recovery())
			defer cancel()
			s, err := a.Session(ctx)
			if err != nil {
				return engine.Is(err, backend.ErrReset)
			}
			m, err := s.Join(ctx, t.Name, "x", "")
			if err == nil && m.Position <= last.Position {
				t.Never("after the coordinator was rebuilt, %s joined; before, %s had", engine.Show(m.Member), engine.Show(last))
			}
			return engine.Is(err, backend.ErrReset)
		})
	},
}, {
	ID: "G2.fence", Title: "RaiseFence lifts every later token",
	Text:  "After RaiseFence, who wins next has a token above the floor, who stood in line before included; raising to less changes nothing; the leader of the time keeps its token.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		term := a.Leads()
		next := b.Stand(t.Ctx)
		floor := term.Token() + 1_000_000
		for _, f := range []uint64{floor, 1} {
			t.Want("RaiseFence", c.Elect().RaiseFence(t.Ctx, f))
		}
		if term.Check() != nil || term.Token() >= floor {
			t.Fatalf("RaiseFence disturbed the leader: token %d, %v", term.Token(), term.Check())
		}
		term.Resign(t.Ctx)
		second := next.Wins(t.Soon())
		if second.Token() <= floor {
			t.Never("the token is %d after the fence was raised to %d", second.Token(), floor)
		}
		second.Resign(t.Ctx)
		grows(t, c, second.Token(), t.Soon())
	},
}}
