package guarantees

import (
	"context"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
)

// quits calls Campaign and cancels it after d. It returns the term if the campaign won
// before that.
func quits(t *engine.Trial, c *engine.Client, d time.Duration) (term election.Term) {
	ctx, cancel := context.WithTimeoutCause(t.Ctx, d, engine.ErrCancelled)
	defer cancel()
	t.Go(c.Name+": a cancelled Campaign", func() (err error) {
		term, err = c.Campaign(ctx)
		return err
	}).Returns(d+bound(t), nil, engine.ErrCancelled)
	return term
}

// bound returns the longest time that a cancelled campaign may take to return. It is bounded
// because resigning is.
func bound(t *engine.Trial) time.Duration { return t.TTL/2 + 3*t.Soon() }

var ghostRules = []engine.Rule{{
	ID: "G6.cancelled", Title: "a cancelled campaign leaves nobody",
	Text: "Behind a leader, forty campaigns are cancelled at moments from 0 to four round trips after they began. Each returns the cause of its context; when a crash would have been noticed, so that nothing is on its way any more, the leader stands alone, while all clients live on.",
	Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		term := a.Leads()
		round := b.RoundTrip()
		for i := range 40 {
			if quits(t, b, time.Duration(i)*round/10+1) != nil {
				t.Fatalf("a candidate behind the leader has won")
			}
		}
		c.Settles(term.Member())
		if err := term.Check(); err != nil {
			t.Fatalf("the leader was disturbed: %v", err)
		}
	},
}, {
	ID: "G6.first", Title: "a campaign that is cancelled as it wins leaves nobody",
	Text: "In an empty election, forty campaigns are cancelled at moments from 0 to four round trips after they began. Each returns a term, which is resigned, or the cause of its context; when a crash would have been noticed nobody stands in line, while all clients live on.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		round := a.RoundTrip()
		for i := range 40 {
			if term := quits(t, a, time.Duration(i)*round/10+1); term != nil {
				t.Want("Resign", term.Resign(t.Ctx))
			}
		}
		b.Settles()
	},
}, {
	ID: "G6.cut", Title: "a campaign cancelled while cut off leaves nobody",
	Text:  "A candidate that waits and one that begins its campaign are cut off, cancelled, and healed. Both campaigns return within their bound; after a crash the leader stands alone, and does so for a TTL.",
	Needs: []engine.Fault{engine.Cut}, Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		a.Leads()
		ctx, cancel := context.WithCancelCause(t.Ctx)
		defer cancel(nil)
		waiting := b.Stand(ctx)
		waiting.Waits()
		c.Live()
		healB, healC := b.Inject(engine.Cut), c.Inject(engine.Cut)
		quits(t, c, t.TTL/10)
		cancel(engine.ErrCancelled)
		waiting.GivesUp(bound(t), engine.ErrCancelled)
		healB()
		healC()
		t.Pass(t.Crash(), "in which what the cut held up may come and go")
		t.Always(t.TTL, "somebody stands in line whom nobody owns", func() bool { return len(a.Members()) == 1 })
	},
}, {
	ID: "G6.later", Title: "who cannot leave in time leaves later, and takes nobody along",
	Text:  "A client leads one election, waits in another, and is cut off. The campaign that waits is cancelled, and may take a fiftieth of TTL to leave: it returns soon. The client is healed a tenth of TTL after the cut. The term of the first election holds for a TTL, and the leader of the other stands alone after a crash, while all clients live on.",
	Needs: []engine.Fault{engine.Cut}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		leader := a.Leads()
		term := b.In(t.Name + "-other").Leads()
		ctx, cancel := context.WithCancelCause(t.Ctx)
		defer cancel(nil)
		waiting := b.StandWith(ctx, elect.Options{ResignTimeout: t.TTL / 50})
		waiting.Waits()
		heal := b.Inject(engine.Cut)
		cutAt := time.Now()
		cancel(engine.ErrCancelled)
		waiting.GivesUp(t.Soon(), engine.ErrCancelled)
		t.Pass(max(0, t.TTL/10-time.Since(cutAt)), "until a tenth of TTL after the cut")
		heal()
		t.Always(t.TTL, "the client lost its other term", func() bool { return term.Check() == nil })
		a.Settles(leader.Member())
	},
}, {
	ID: "G6.lost-answer", Title: "a lost answer leaves no ghost in front",
	Text:  "The answer to a candidate's first write is lost. It wins after a crash at the latest, with one member in line; after it has resigned nobody stands, and the next candidate wins soon. Three times.",
	Needs: []engine.Fault{engine.LoseAnswer}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		for range 3 {
			a.Live()
			a.Inject(engine.LoseAnswer)
			ctx, cancel := t.Within(t.Crash())
			term, err := a.Campaign(ctx)
			t.Want("Campaign with a lost answer", err)
			b.Shows(t.Soon(), term.Member())
			t.Want("Resign", term.Resign(ctx))
			cancel()
			b.Shows(t.Soon())
			grows(t, b, 0, t.Soon())
		}
	},
}, {
	ID: "G6.lost-resign", Title: "a lost answer to resigning leaves no ghost",
	Text:  "The answer to the leader's Leave is lost. Resign returns within its bound, and the next candidate wins after a crash at the latest. Three times.",
	Needs: []engine.Fault{engine.LoseAnswer}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		for range 3 {
			term := a.Leads()
			next := b.Stand(t.Ctx)
			a.Inject(engine.LoseAnswer)
			term.Resign(t.Ctx)
			second := next.Wins(t.Crash())
			second.Resign(t.Ctx)
		}
		b.Shows(t.Crash())
	},
}, {
	ID: "G6.held", Title: "a candidate's request that comes late leaves no ghost",
	Text:  "A request by which a candidate joins is held back on its way. It wins after a crash at the latest, and an operator removes its member. When the next in line leads and the old term was resigned, the request arrives: when a crash has passed, the new leader stands alone, while the clients live on.",
	Needs: []engine.Fault{engine.HoldBack, engine.Remove}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		var term election.Term
		campaign := engine.OpOf("Campaign", func(ctx context.Context) (err error) {
			term, err = a.Campaign(ctx)
			return err
		})
		call, arrives, _ := a.HoldsBack(t.Ctx, campaign, 0)
		call.Returns(t.Crash())
		next := b.Stand(t.Ctx)
		t.Remove(term.Member())
		second := next.Wins(t.Recheck())
		_ = term.Resign(t.Ctx)
		arrives()
		b.Settles(second.Member())
		if err := second.Check(); err != nil {
			t.Fatalf("the leader was disturbed: %v", err)
		}
	},
}}
