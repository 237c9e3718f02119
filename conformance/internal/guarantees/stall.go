package guarantees

import (
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// hands returns the check of a rule: the next in line leads at once after the leader has ended
// in this way, and the third leads soon after the second has resigned.
func hands(end func(t *engine.Trial, c *engine.Client, term election.Term)) func(*engine.Trial) {
	return func(t *engine.Trial) {
		b, c, leaders := t.Client(), t.Client(), t.Apart()
		var terms []election.Term
		var second, third []*engine.Candidate
		for _, a := range leaders {
			terms = append(terms, a.Leads())
			second = append(second, b.In(a.Election).Stand(t.Ctx))
			third = append(third, c.In(a.Election).Stand(t.Ctx))
		}
		next := engine.AtOnce(t, "the next in line has not won", func(i int) <-chan election.Term {
			end(t, leaders[i], terms[i])
			return second[i].Won()
		})
		for i, term := range next {
			term.Resign(t.Ctx)
			third[i].Wins(t.Soon())
		}
	}
}

var stallRules = []engine.Rule{{
	ID: "G8.resign", Title: "a resignation hands over at once",
	Text: "Eight times a leader resigns and the next in line wins soon; the fastest takes less than half a TTL, so that it was a notification that woke it and not the slow re-check.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		term := a.Leads()
		fastest := time.Hour
		for range 8 {
			next := b.Stand(t.Ctx)
			next.Waits()
			began := time.Now()
			t.Want("Resign", term.Resign(t.Ctx))
			term = next.Wins(t.Soon() + t.TTL)
			fastest = min(fastest, time.Since(began))
			a, b = b, a
		}
		if fastest >= t.TTL/2 {
			t.Fatalf("the fastest of eight handovers took %v", fastest)
		}
	},
}, {
	ID: "G8.close", Title: "closing the backend hands over at once",
	Text:  "When the leader's backend is closed, the next in line wins at once, and the one after that soon in its turn. Five elections.",
	Check: hands(func(_ *engine.Trial, c *engine.Client, _ election.Term) { c.Closes() }),
}, {
	ID: "G8.expire", Title: "the end of a session hands over at once",
	Text:  "As G8.close, when the coordinator ends the leader's session.",
	Needs: []engine.Fault{engine.Expire},
	Check: hands(func(_ *engine.Trial, c *engine.Client, _ election.Term) { c.Inject(engine.Expire) }),
}, {
	ID: "G8.removed", Title: "a removal hands over at once",
	Text:  "As G8.close, when an operator removes the leader's member.",
	Needs: []engine.Fault{engine.Remove},
	Check: hands(func(t *engine.Trial, _ *engine.Client, term election.Term) { t.Remove(term.Member()) }),
}, {
	ID: "G8.waiter-removed", Title: "a waiter that was removed stands in line again",
	Text:  "An operator removes a waiting candidate's member, and deletes the election. The candidate joins again after its slow re-check, and wins when the others have gone.",
	Needs: []engine.Fault{engine.Remove, engine.Drop}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		term := a.Leads()
		next := b.Stand(t.Ctx)
		next.Waits()
		t.Remove(b.Members()[1])
		next.Joins(t.Recheck() + t.Soon())
		next.Waits()
		t.Drop(t.Name)
		next.Joins(t.Recheck() + t.Soon())
		next.Wins(t.Soon())
		if term.Check() == nil {
			t.Fatalf("two leaders after the election was deleted")
		}
	},
}, {
	ID: "G8.waiter-expired", Title: "a waiter whose session ended stands in line again",
	Text:  "When the coordinator ends a waiting candidate's session, it joins again after recovery, and wins soon after the leader has resigned.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		term := a.Leads()
		next := b.Stand(t.Ctx)
		next.Waits()
		b.Inject(engine.Expire)
		next.Joins(t.Recovery())
		term.Resign(t.Ctx)
		next.Wins(t.Soon())
	},
}, {
	ID: "G8.cut", Title: "a waiter that was cut off is not stuck",
	Text:  "A waiting candidate is cut off, once for a third of TTL and once beyond its session's time, and healed; the leader resigns meanwhile. The candidate wins after recovery.",
	Needs: []engine.Fault{engine.Cut}, Check: func(t *engine.Trial) {
		for _, d := range []time.Duration{t.TTL / 3, t.Crash() * 5 / 4} {
			a, b := t.Client(), t.Client()
			term := a.Leads()
			next := b.Stand(t.Ctx)
			next.Waits()
			heal := b.Inject(engine.Cut)
			term.Resign(t.Ctx)
			t.Pass(d, "while the candidate is cut off")
			heal()
			second := next.Wins(t.Recovery())
			second.Resign(t.Ctx)
			a.Shows(t.Crash())
		}
	},
}}
