package recipes

import (
	"context"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/recipes/barrier"
)

// An arrival is a call that waits for a barrier.
type arrival struct {
	*engine.Call
	c    *engine.Client
	quit context.CancelFunc
	in   *barrier.Inside // of a double barrier that has opened
}

// arrives has the client wait for a Barrier of n in the background.
func arrives(t *engine.Trial, c *engine.Client, n int) *arrival {
	return arrive(t, c, "Wait", func(ctx context.Context, _ *arrival) error {
		return barrier.New(c, c.Election, n, options(t, c)).Wait(ctx)
	})
}

// arrivals is the client in the line of those who stand at the barrier.
func arrivals(c *engine.Client) *engine.Client { return c.In(c.Election + "-arrivals") }

func arrive(t *engine.Trial, c *engine.Client, what string, f func(context.Context, *arrival) error) *arrival {
	a := &arrival{c: c}
	var ctx context.Context
	ctx, a.quit = context.WithCancel(t.Ctx)
	a.Call = t.Go(fmt.Sprintf("%s: %s", c.Name, what), func() error { return f(ctx, a) })
	return a
}

// waiting has the clients arrive one after the other, fewer than n, and checks that none passes.
func waiting(t *engine.Trial, n int, cs ...*engine.Client) (all []*arrival) {
	for i, c := range cs {
		all = append(all, arrives(t, c, n))
		stands(t, arrivals(c), i+1)
	}
	stay(t, n, all...)
	return all
}

// stay checks that none of those who wait passes.
func stay(t *engine.Trial, n int, all ...*arrival) {
	t.Always(t.TTL/20, fmt.Sprintf("%d wait for a barrier of %d, and one has passed", len(all), n), func() bool {
		return !slices.ContainsFunc(all, func(a *arrival) bool { return a.Returned() })
	})
}

// pass checks that all pass soon.
func pass(t *engine.Trial, all ...*arrival) {
	for _, a := range all {
		a.Returns(t.Soon())
	}
}

// woken has eight clients give up, come and pass at a barrier, and says who of those that nothing concerned
// has sent anything; it is empty if none has. See Barrier.woken.
func woken(t *engine.Trial, cs []*engine.Client) string {
	all := waiting(t, 8, cs[:6]...)
	t.Settles(cs...)
	giveUp := func(a *arrival) {
		a.quit()
		a.Returns(t.Soon(), context.Canceled)
	}
	heard := noise(t, cs[1:5], 1, func() {
		for range 3 {
			giveUp(all[5])
			stands(t, arrivals(cs[7]), 5)
			all[5] = arrives(t, cs[5], 8)
			stands(t, arrivals(cs[7]), 6)
		}
	})
	heard += noise(t, cs[4:5], 1, func() {
		giveUp(all[1])
		giveUp(all[2])
		t.Pass(t.TTL/20, "in which others wake")
	})
	all[1], all[2] = arrives(t, cs[1], 8), arrives(t, cs[2], 8)
	pass(t, append(all, arrives(t, cs[6], 8), arrives(t, cs[7], 8))...)
	arrivals(cs[0]).Shows(t.Soon())
	return heard
}

var barrierRules = []engine.Rule{{
	ID: "Barrier.opens", Title: "a barrier opens for n together",
	Text:  "Two of three clients wait for a Barrier: neither passes. The third comes, and all pass soon. In the same way two more rounds pass, of clients that have passed and of late ones. In the end nobody stands in line. Meanwhile the first also waits for another Barrier, whose line begins alike, and does not pass.",
	Needs: []engine.Fault{engine.Shares, engine.Records},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		alike := cs[0].In(t.Name + "-arrivals-x")
		other := arrives(t, alike, 3)
		stands(t, arrivals(alike), 1)
		for _, round := range [][]int{{0, 1, 2}, {3, 2, 1}, {1, 0, 3}} {
			all := waiting(t, 3, cs[round[0]], cs[round[1]])
			pass(t, append(all, arrives(t, cs[round[2]], 3))...)
			arrivals(cs[0]).Shows(t.Soon())
		}
		stay(t, 3, other)
	},
}, {
	ID: "Barrier.crash", Title: "who has died does not count",
	Text:  "Of three clients that wait for a Barrier of four the first and the second crash. When the third stands alone, after a crash, two more come: nobody passes. One more comes, and all four pass, after its slow re-check.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Kill},
	Check: func(t *engine.Trial) {
		cs := t.Clients(6)
		all := waiting(t, 4, cs[:3]...)[2:]
		cs[0].Inject(engine.Kill)
		cs[1].Inject(engine.Kill)
		t.Eventually(t.Crash()+t.Soon(), "one of three stands", func() bool { return len(arrivals(cs[2]).Members()) == 1 })
		all = append(all, arrives(t, cs[3], 4), arrives(t, cs[4], 4))
		stands(t, arrivals(cs[3]), 3)
		stay(t, 4, all...)
		for _, a := range append(all, arrives(t, cs[5], 4)) {
			a.Returns(t.Recheck() + t.Soon())
		}
		arrivals(cs[2]).Shows(t.Soon())
	},
}, {
	ID: "Barrier.woken", Title: "a join and an exit do not wake all",
	Text:  "Of six clients that wait for a Barrier of eight, the last gives up and comes again, three times: those between the first and the last send nothing. The second and the third give up: the fifth sends nothing. Four come, and all eight pass soon. It is enough that nothing is sent at one of three such barriers, as heartbeats and watches that end for nothing may come at once.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Requests},
	Check: func(t *engine.Trial) {
		cs := t.Clients(8)
		heard := ""
		for i := range 3 {
			at := make([]*engine.Client, len(cs))
			for j, c := range cs {
				at[j] = c.In(fmt.Sprintf("%s-%d", t.Name, i+1))
			}
			if heard = woken(t, at); heard == "" {
				return
			}
		}
		t.Fatalf("at each of three barriers; at the last %s", heard)
	},
}, {
	ID: "Barrier.cut", Title: "who was counted passes after its session",
	Text:  "The second of three clients that wait for a Barrier is cut off, before the third comes: the two others pass soon. After a crash, when the session of the second has ended, it is healed: it passes too, after recovery. Then the three pass another round.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Deadlines, engine.Cut},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		all := waiting(t, 3, cs[:2]...)
		heal := cs[1].Inject(engine.Cut)
		pass(t, all[0], arrives(t, cs[2], 3))
		t.Eventually(t.Crash()+t.Soon(), "nobody stands in line", func() bool { return len(arrivals(cs[0]).Members()) == 0 })
		heal()
		all[1].Returns(t.Recovery())
		arrivals(cs[0]).Shows(t.Recovery())
		for _, c := range cs {
			all = append(all, arrives(t, c, 3))
		}
		for _, a := range all[2:] {
			a.Returns(t.Recovery())
		}
	},
}, {
	ID: "Barrier.expired", Title: "who waits counts once, whatever its sessions",
	Text:  "Of three clients that wait for a Barrier of four the session of the second is ended. Within the time of two crashes it stands in line again, behind the others, and nobody passes. A fourth comes, and all pass, within a crash.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.Expire},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		all := waiting(t, 4, cs[:3]...)
		stands(t, arrivals(cs[3]), 3)
		before := arrivals(cs[3]).Members()
		cs[1].Inject(engine.Expire)
		t.Eventually(2*t.Crash(), "the second stands in line again, behind the others", func() bool {
			now := arrivals(cs[3]).Members()
			return len(now) == 3 && engine.Same(now[0], before[0]) && engine.Same(now[1], before[2]) && now[2].Position > before[2].Position
		})
		stay(t, 4, all...)
		for _, a := range append(all, arrives(t, cs[3], 4)) {
			a.Returns(t.Crash())
		}
		arrivals(cs[0]).Shows(t.Soon())
	},
}, {
	ID: "Barrier.lost-answer", Title: "a lost answer neither opens a barrier nor keeps it shut",
	Text:  "The answer is lost to the request by which the first of three clients joins, and to that by which it opens the barrier. While two have come neither passes; when the third comes all pass, within the time of two crashes. In the end the line is empty.",
	Needs: []engine.Fault{engine.Shares, engine.Records, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		cs[0].Live()
		cs[0].Inject(engine.LoseAnswer)
		all := []*arrival{arrives(t, cs[0], 3)}
		t.Eventually(2*t.Crash(), "the first stands in line", func() bool { return len(arrivals(cs[1]).Members()) > 0 })
		all = append(all, arrives(t, cs[1], 3))
		t.Pass(t.Soon(), "in which it finds its place")
		stay(t, 3, all...)
		cs[0].Inject(engine.LoseAnswer)
		for _, a := range append(all, arrives(t, cs[2], 3)) {
			a.Returns(2*t.Crash(), nil)
		}
		arrivals(cs[1]).Settles()
	},
}}
