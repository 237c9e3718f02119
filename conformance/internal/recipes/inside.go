package recipes

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/barrier"
)

// enters is arrives for a DoubleBarrier. Whoever has entered leaves at the end of the rule, if not
// before.
func enters(t *engine.Trial, c *engine.Client, n int) *arrival {
	return arrive(t, c, "Enter", func(ctx context.Context, a *arrival) (err error) {
		a.in, err = barrier.NewDouble(c, c.Election, n, options(t, c)).Enter(ctx)
		if err == nil {
			t.Cleanup(func() { a.in.Term().Resign(context.Background()) })
		}
		return err
	})
}

// inside has the clients enter a DoubleBarrier together.
func inside(t *engine.Trial, cs ...*engine.Client) (all []*arrival) {
	for _, c := range cs {
		all = append(all, enters(t, c, len(cs)))
	}
	pass(t, all...)
	return all
}

// leaves has one that is inside leave in the background.
func (a *arrival) leaves(t *engine.Trial) *engine.Call {
	return t.Go(a.c.Name+": Leave", func() error { return a.in.Leave(t.Ctx) })
}

var insideRules = []engine.Rule{{
	ID: "Barrier.leave", Title: "a double barrier is left together",
	Text:  "Three clients enter a DoubleBarrier, and then three others. Two of the first three call Leave: neither returns. The third does, and all three return soon. The others are still inside, and leave in the same way; then nobody stands in line.",
	Needs: []engine.Fault{engine.Shares, engine.Records},
	Check: func(t *engine.Trial) {
		rounds := [2][]*arrival{}
		cs := t.Clients(6)
		for i := range rounds {
			for _, c := range cs[3*i:][:3] {
				rounds[i] = append(rounds[i], enters(t, c, 3))
				stands(t, arrivals(c), 3*i+len(rounds[i]))
			}
			pass(t, rounds[i]...)
		}
		for i, round := range rounds {
			one, two := round[1-i].leaves(t), round[2].leaves(t)
			t.Always(t.TTL/20, "two of three have called Leave, and one has returned", func() bool { return !one.Returned() && !two.Returned() })
			t.Want("Check of one who is inside", round[i].in.Check())
			for _, k := range []*engine.Call{one, two, round[i].leaves(t)} {
				k.Returns(t.Soon())
			}
		}
		arrivals(cs[0]).Shows(t.Soon())
	},
}, {
	ID: "Barrier.died", Title: "who dies inside has left",
	Text:  "Three clients enter a DoubleBarrier. One of them crashes, and the two others call Leave: it returns after a crash and the slow re-check.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Kill},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		all := inside(t, cs...)
		cs[1].Inject(engine.Kill)
		one, two := all[0].leaves(t), all[2].leaves(t)
		for _, k := range []*engine.Call{one, two} {
			k.Returns(t.Crash() + t.Recheck() + t.Soon())
		}
		arrivals(cs[0]).Shows(t.Soon())
	},
}, {
	ID: "Barrier.leave-cut", Title: "who is cut off inside knows before the others take it for having left",
	Text:  "Three clients enter a DoubleBarrier. One of them is cut off, and the two others call Leave: it returns after a crash and the slow re-check. Before that the context of the one that is cut off has ended. When it is healed its Leave returns too, after recovery.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Deadlines, engine.Cut},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		all := inside(t, cs...)
		heal := cs[1].Inject(engine.Cut)
		one, two := all[0].leaves(t), all[2].leaves(t)
		one.Returns(t.Crash() + t.Recheck() + t.Soon())
		t.HasLost(all[1].in, fmt.Sprintf("the others have left, and %s, who is cut off, is inside by the %s", cs[1].Name, all[1].in))
		two.Returns(t.Crash() + t.Recheck() + t.Soon())
		heal()
		all[1].leaves(t).Returns(t.Recovery())
		arrivals(cs[0]).Shows(t.Soon())
	},
}, {
	ID: "Barrier.leave-expired", Title: "whose session has ended has left",
	Text:  "Three clients enter a DoubleBarrier, and the session of one of them is ended. Its context ends after a crash, and Check says ErrLost. The two others call Leave, and so does the first: all return within a crash and the slow re-check.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Expire},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		all := inside(t, cs...)
		cs[1].Inject(engine.Expire)
		engine.Await(t, all[1].in.Context().Done(), t.Crash(), "the context of one whose session was ended has not ended")
		t.Want("Check of one whose session was ended", all[1].in.Check(), elect.ErrLost)
		for _, k := range []*engine.Call{all[0].leaves(t), all[1].leaves(t), all[2].leaves(t)} {
			k.Returns(t.Crash() + t.Recheck() + t.Soon())
		}
		arrivals(cs[0]).Shows(t.Soon())
	},
}, {
	ID: "Barrier.leave-lost-answer", Title: "a lost answer keeps nobody inside",
	Text:  "The answer is lost to the request by which the second of three clients joins that enter a DoubleBarrier, and to that by which it leaves. All enter within the time of two crashes, and leave within that and the slow re-check. In the end the line is empty.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		all := []*arrival{enters(t, cs[0], 3)}
		stands(t, arrivals(cs[0]), 1)
		cs[1].Live()
		cs[1].Inject(engine.LoseAnswer)
		all = append(all, enters(t, cs[1], 3), enters(t, cs[2], 3))
		for _, a := range all {
			a.Returns(2 * t.Crash())
		}
		cs[1].Inject(engine.LoseAnswer)
		for _, k := range []*engine.Call{all[1].leaves(t), all[0].leaves(t), all[2].leaves(t)} {
			k.Returns(2*t.Crash() + t.Recheck())
		}
		arrivals(cs[0]).Settles()
	},
}}
