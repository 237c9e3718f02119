package conformance

import (
	"fmt"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/internal/history"
)

// hands is a rule that the next in line leads at once after an end of the leader, and the
// one after that in its turn.
func hands(end func(t *trial, c *client, term election.Term)) func(*trial) {
	return func(t *trial) {
		b, c := t.client(), t.client()
		leaders := make([]*client, moments)
		terms := make([]election.Term, moments)
		second, third := make([]*standing, moments), make([]*standing, moments)
		for i, line := range t.lines() {
			leaders[i] = t.client().in(line)
			terms[i] = leaders[i].campaign()
			second[i] = b.in(line).campaigns(t.ctx)
			third[i] = c.in(line).campaigns(t.ctx)
		}
		next := atOnce(t, "the next in line has not won", func(i int) <-chan election.Term {
			end(t, leaders[i], terms[i])
			return second[i].won
		})
		for i, term := range next {
			term.Resign(t.ctx)
			third[i].wins(t.h.soon())
		}
	}
}

var stallRules = []Rule{{
	ID:    "G8.resign",
	Title: "a resignation hands over at once",
	Text:  "Eight times a leader resigns and the next in line wins soon; the fastest takes less than half a TTL, so that it was a notification that woke it and not the slow re-check.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		term := a.campaign()
		fastest := time.Hour
		for range 8 {
			next := b.campaigns(t.ctx)
			next.waits()
			began := time.Now()
			if err := term.Resign(t.ctx); err != nil {
				t.fatalf("Resign: %v", err)
			}
			term = next.wins(t.h.soon() + t.h.TTL)
			fastest = min(fastest, time.Since(began))
			a, b = b, a
		}
		if fastest >= t.h.TTL/2 {
			t.fatalf("the fastest of eight handovers took %v", fastest)
		}
	},
}, {
	ID:    "G8.close",
	Title: "closing the backend hands over at once",
	Text:  "When the leader's backend is closed, the next in line wins at once, and the one after that soon in its turn. Five elections.",
	check: hands(func(t *trial, c *client, _ election.Term) {
		if err := c.Close(); err != nil {
			t.fatalf("Close: %v", err)
		}
	}),
}, {
	ID:    "G8.kill",
	Title: "a crash hands over within the session's time",
	Text:  "When the leader's client is killed, the next in line wins after a crash at the latest.",
	Needs: []Fault{Kill},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		a.campaign()
		next := b.campaigns(t.ctx)
		a.kill()
		next.wins(t.h.crash())
	},
}, {
	ID:    "G8.expire",
	Title: "the end of a session hands over at once",
	Text:  "As G8.close, when the coordinator ends the leader's session.",
	Needs: []Fault{Expire},
	check: hands(func(_ *trial, c *client, _ election.Term) { c.expire() }),
}, {
	ID:    "G8.removed",
	Title: "a removal hands over at once",
	Text:  "As G8.close, when an operator removes the leader's member.",
	Needs: []Fault{Remove},
	check: hands(func(t *trial, _ *client, term election.Term) { t.remove(term.Member()) }),
}, {
	ID:    "G8.waiter-removed",
	Title: "a waiter that was removed stands in line again",
	Text:  "An operator removes a waiting candidate's member, and deletes the election. The candidate joins again after its slow re-check, and wins when the others have gone.",
	Needs: []Fault{Remove, Drop},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		term := a.campaign()
		next := b.campaigns(t.ctx)
		next.waits()
		t.remove(b.members()[1])
		await(t, next.joined, t.h.recheck()+t.h.soon(), "the removed candidate has not joined again")
		next.waits()
		t.drop()
		await(t, next.joined, t.h.recheck()+t.h.soon(), "the candidate of a deleted election has not joined again")
		next.wins(t.h.soon())
		if term.Check() == nil {
			t.fatalf("two leaders after the election was deleted")
		}
	},
}, {
	ID:    "G8.waiter-expired",
	Title: "a waiter whose session ended stands in line again",
	Text:  "When the coordinator ends a waiting candidate's session, it joins again after recovery, and wins soon after the leader has resigned.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		term := a.campaign()
		next := b.campaigns(t.ctx)
		next.waits()
		b.expire()
		await(t, next.joined, t.h.recovery(), "the candidate has not joined again")
		term.Resign(t.ctx)
		next.wins(t.h.soon())
	},
}, {
	ID:    "G8.cut",
	Title: "a waiter that was cut off is not stuck",
	Text:  "A waiting candidate is cut off, once for a third of TTL and once beyond its session's time, and healed; the leader resigns meanwhile. The candidate wins after recovery.",
	Needs: []Fault{Cut},
	check: func(t *trial) {
		for _, d := range []time.Duration{t.h.TTL / 3, t.h.crash() * 5 / 4} {
			a, b := t.client(), t.client()
			term := a.campaign()
			next := b.campaigns(t.ctx)
			next.waits()
			heal := b.cut()
			term.Resign(t.ctx)
			t.pass(d, "while the candidate is cut off")
			heal()
			second := next.wins(t.h.recovery())
			second.Resign(t.ctx)
			a.showsWithin(t.h.crash())
		}
	},
}, {
	ID:    "G8.restart",
	Title: "watches outlive a restart of the coordinator",
	Text:  "Three candidates stand in line and the coordinator is restarted. Somebody leads after recovery, and resigning hands over, each time after recovery at the latest; after twice that time every one of them has led.",
	Needs: []Fault{Restart},
	check: func(t *trial) { survives(t, t.restart) },
}, {
	ID:    "G8.pause",
	Title: "candidates outlive a pause of the coordinator",
	Text:  "As G8.restart, when the coordinator stands still for one and a half times TTL + Slack.",
	Needs: []Fault{Pause},
	check: func(t *trial) {
		survives(t, func() {
			resume := t.pause()
			t.pass((t.h.TTL+t.h.Slack)*3/2, "a pause longer than a session")
			resume()
		})
	},
}}

// survives has three candidates lead until each has, over a fault of the
// coordinator. How many terms that takes is not said: those who are back already
// hand over in milliseconds, while the last one still looks for its server.
func survives(t *trial, fault func()) {
	cs := t.opened(3)
	r := t.race(cs, 0)
	var g *reign
	for range 2 {
		if g = r.leader(0, t.h.recovery()); g != nil {
			fault()
		}
	}
	led := make(map[*client]bool)
	last := uint64(0)
	for end := time.Now().Add(2 * t.h.recovery()); len(led) < len(cs); {
		if time.Now().After(end) {
			t.fatalf("only %s of %d candidates have led %v after the fault", names(led), len(cs), 2*t.h.recovery())
		}
		g = r.leader(last, t.h.recovery())
		led[g.c] = true
		last = g.token
		g.resign()
	}
	r.stop(history.Rules{})
}

func names(cs map[*client]bool) string {
	var out []string
	for c := range cs {
		out = append(out, c.name)
	}
	return fmt.Sprint(out)
}
