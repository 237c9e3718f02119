package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
)

// quits calls Campaign and cancels it after d. It returns the term where the
// campaign won before that.
func (c *client) quits(d, bound time.Duration) election.Term {
	ctx, cancel := context.WithTimeoutCause(c.t.ctx, d, errCancelled)
	defer cancel()
	type outcome struct {
		term election.Term
		err  error
	}
	result := make(chan outcome, 1)
	c.t.spawn(func() {
		term, err := c.stand(ctx, c.elect())
		result <- outcome{term, err}
	})
	o := await(c.t, result, d+bound, c.name+": a cancelled Campaign has not returned")
	if o.err != nil && !errors.Is(o.err, errCancelled) {
		c.t.fatalf("%s: a cancelled Campaign returned %v; want the cause of its context", c.name, o.err)
	}
	return o.term
}

// bound is how long a cancelled campaign may take at most: resigning has a bound.
func (t *trial) bound() time.Duration { return t.h.TTL/2 + 3*t.h.soon() }

var ghostRules = []Rule{{
	ID:    "G6.cancelled",
	Title: "a cancelled campaign leaves nobody",
	Text:  "Behind a leader, forty campaigns are cancelled at moments from 0 to four round trips after they began. Each returns the cause of its context; when a crash would have been noticed, so that nothing is on its way any more, the leader stands alone, while all clients live on.",
	check: func(t *trial) {
		a, b, c := t.client(), t.client(), t.client()
		term := a.campaign()
		round := t.roundTrip(b)
		for i := range 40 {
			if b.quits(time.Duration(i)*round/10+1, t.bound()) != nil {
				t.fatalf("a candidate behind the leader has won")
			}
		}
		c.settles(term.Member())
		if err := term.Check(); err != nil {
			t.fatalf("the leader was disturbed: %v", err)
		}
	},
}, {
	ID:    "G6.first",
	Title: "a campaign that is cancelled as it wins leaves nobody",
	Text:  "In an empty election, forty campaigns are cancelled at moments from 0 to four round trips after they began. Each returns a term, which is resigned, or the cause of its context; when a crash would have been noticed nobody stands in line, while all clients live on.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		round := t.roundTrip(a)
		for i := range 40 {
			if term := a.quits(time.Duration(i)*round/10+1, t.bound()); term != nil {
				if err := term.Resign(t.ctx); err != nil {
					t.fatalf("Resign: %v", err)
				}
			}
		}
		b.settles()
	},
}, {
	ID:    "G6.cut",
	Title: "a campaign cancelled while cut off leaves nobody",
	Text:  "A candidate that waits and one that begins its campaign are cut off, cancelled, and healed. Both campaigns return within their bound; after a crash the leader stands alone, and does so for a TTL.",
	Needs: []Fault{Cut},
	check: func(t *trial) {
		a, b, c := t.client(), t.client(), t.client()
		a.campaign()
		ctx, cancel := context.WithCancelCause(t.ctx)
		defer cancel(nil)
		waiting := b.campaigns(ctx)
		waiting.waits()
		c.live()
		healB, healC := b.cut(), c.cut()
		c.quits(t.h.TTL/10, t.bound())
		cancel(errCancelled)
		if err := await(t, waiting.failed, t.bound(), "a cancelled Campaign has not returned"); !errors.Is(err, errCancelled) {
			t.fatalf("a cancelled Campaign returned %v; want the cause of its context", err)
		}
		healB()
		healC()
		t.pass(t.h.crash(), "in which what the cut held up may come and go")
		t.steady(t.h.TTL, "somebody stands in line whom nobody owns", func() bool { return len(a.members()) == 1 })
	},
}, {
	ID:    "G6.later",
	Title: "who cannot leave in time leaves later, and takes nobody along",
	Text:  "A client leads one election, waits in another, and is cut off. The campaign that waits is cancelled, and may take a fiftieth of TTL to leave: it returns soon. The client is healed a tenth of TTL after the cut. The term of the first election holds for a TTL, and the leader of the other stands alone after a crash, while all clients live on.",
	Needs: []Fault{Cut},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		leader := a.campaign()
		term := b.in(t.line + "-other").campaign()
		ctx, cancel := context.WithCancelCause(t.ctx)
		defer cancel(nil)
		waiting := b.campaignsWith(ctx, elect.Options{ResignTimeout: t.h.TTL / 50})
		waiting.waits()
		heal := b.cut()
		cutAt := time.Now()
		cancel(errCancelled)
		if err := await(t, waiting.failed, t.h.soon(), "a cancelled Campaign has not returned"); !errors.Is(err, errCancelled) {
			t.fatalf("a cancelled Campaign returned %v; want the cause of its context", err)
		}
		t.pass(max(0, t.h.TTL/10-time.Since(cutAt)), "until a tenth of TTL after the cut")
		heal()
		t.steady(t.h.TTL, "the client lost its other term", func() bool { return term.Check() == nil })
		a.settles(leader.Member())
	},
}, {
	ID:    "G6.lost-answer",
	Title: "a lost answer leaves no ghost in front",
	Text:  "The answer to a candidate's first write is lost. It wins after a crash at the latest, with one member in line; after it has resigned nobody stands, and the next candidate wins soon. Three times.",
	Needs: []Fault{LoseAnswer},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		for range 3 {
			a.live()
			a.loseAnswer()
			ctx, cancel := t.within(t.h.crash())
			term, err := a.stand(ctx, a.elect())
			if err != nil {
				t.fatalf("Campaign with a lost answer: %v", err)
			}
			b.shows(term.Member())
			if err := term.Resign(ctx); err != nil {
				t.fatalf("Resign: %v", err)
			}
			cancel()
			b.shows()
			b.grows(0, t.h.soon())
		}
	},
}, {
	ID:    "G6.lost-resign",
	Title: "a lost answer to resigning leaves no ghost",
	Text:  "The answer to the leader's Leave is lost. Resign returns within its bound, and the next candidate wins after a crash at the latest. Three times.",
	Needs: []Fault{LoseAnswer},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		for range 3 {
			term := a.campaign()
			next := b.campaigns(t.ctx)
			a.loseAnswer()
			term.Resign(t.ctx)
			second := next.wins(t.h.crash())
			second.Resign(t.ctx)
		}
		b.showsWithin(t.h.crash())
	},
}}
