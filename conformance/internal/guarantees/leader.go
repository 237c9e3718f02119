package guarantees

import (
	"fmt"
	"time"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/history"
)

// deposes is a rule for a fault that hits the leader alone, four times: the next
// one leads within a crash, and the old one has learnt of its loss.
func deposes(fault func(t *engine.Trial, r *engine.Race, g *engine.Reign) (undo func()), notice func(*engine.Trial) time.Duration) func(*engine.Trial) {
	return func(t *engine.Trial) {
		cs := t.Clients(4)
		r := t.Race(cs, 0)
		var last uint64
		for range 4 {
			g := r.Leader(last, t.Recovery())
			undo := fault(t, r, g)
			r.Leader(g.Token, t.Crash())
			r.Ends(g, t.Soon())
			undo()
			last = g.Token
		}
		r.Stop(history.Rules{Notice: notice(t)})
	}
}

// late has a client lead in front of the rest, cuts it off for d, and waits until somebody
// leads again.
func late(t *engine.Trial, r *engine.Race, leader *engine.Client, rest []*engine.Client, d time.Duration) {
	r.Enter(leader, engine.Manner{})
	r.Leader(0, t.Recovery())
	for _, c := range rest {
		engine.Await(t, r.Enter(c.In(leader.Election), engine.Manner{}), t.Recovery(), c.Name+" has not joined")
	}
	heal := leader.Inject(engine.Cut)
	t.Pass(d, "before the leader is healed")
	heal()
	r.Leader(0, t.Recovery())
}

func none(*engine.Trial) time.Duration { return 0 }

var leaderRules = []engine.Rule{{
	ID:    "G1.churn",
	Title: "one leader while all come and go",
	Text:  "Five candidates campaign, lead for a moment, resign and campaign again, for forty terms. No leader's Check returns nil after another has won, and tokens grow in the order of winning.",
	Check: func(t *engine.Trial) {
		r := t.Race(t.Clients(5), t.Tick())
		t.Eventually(t.Limit(), "forty terms come to pass", func() bool { return r.Count() >= 40 })
		r.Stop(history.Rules{})
	},
}, {
	ID:    "G1.cut",
	Title: "one leader when the leader is cut off",
	Text:  "The leader of four is cut off, another leads after a crash, and the old one is healed; four times. No leader's Check returns nil after another has won, and tokens grow.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines},
	Check: deposes(func(t *engine.Trial, r *engine.Race, g *engine.Reign) func() { return g.Client.Inject(engine.Cut) }, none),
}, {
	ID:    "G1.deaf",
	Title: "one leader when answers are lost",
	Text:  "As G1.cut, when the leader's requests arrive and the answers do not; there may be another leader only when the coordinator has ended the session. The old one learns of its loss within TTL: by then its deadline has passed, whichever request was answered last.",
	Needs: []engine.Fault{engine.Deafen, engine.Deadlines},
	Check: func(t *engine.Trial) {
		r := t.Race(t.Clients(4), 0)
		var last uint64
		for range 4 {
			g := r.Leader(last, t.Recovery())
			heal := g.Client.Inject(engine.Deafen)
			r.Ends(g, t.TTL+t.Tick()) // a tick for the looking
			heal()
			r.Leader(g.Token, t.Recovery())
			last = g.Token
		}
		r.Stop(history.Rules{})
	},
}, {
	ID:    "G1.late",
	Title: "one leader when the leader is healed in the nick of time",
	Text:  "The leaders of eleven elections, of three candidates each, are cut off and healed about when their sessions end: each at a moment of its own, from a half to one and a half times TTL + Slack. Whether or not they go on leading, no leader's Check returns nil after another has won, tokens grow, and somebody leads after recovery.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines},
	Check: func(t *engine.Trial) {
		whole := t.TTL + t.Slack
		rest := t.Clients(2)
		var races []*engine.Race
		var healed []*engine.Call
		for i := range 11 {
			line := fmt.Sprintf("%s-%d", t.Name, i)
			r, leader := t.NewRace(), t.Client().In(line)
			races = append(races, r)
			healed = append(healed, t.Go("the time until somebody leads again", func() error {
				late(t, r, leader, rest, whole/2+time.Duration(i)*whole/10)
				return nil
			}))
		}
		terms := 0
		for i, r := range races {
			healed[i].Returns(t.Limit())
			r.End()
			terms += r.Count()
		}
		if terms == len(races) {
			t.Fatalf("no term has ended: the rule has shown nothing")
		}
		t.Judge(history.Rules{})
	},
}, {
	ID:    "G1.expire",
	Title: "one leader when sessions are ended",
	Text:  "The coordinator ends the session of the leader of four, four times. A healthy leader is told of that and does not foresee it: its Check may return nil until soon after another has won, and no longer. Tokens grow.",
	Needs: []engine.Fault{engine.Expire},
	Check: deposes(func(t *engine.Trial, r *engine.Race, g *engine.Reign) func() {
		g.Client.Inject(engine.Expire)
		return func() {}
	}, (*engine.Trial).Soon),
}, {
	ID:    "G1.kill",
	Title: "one leader when clients crash",
	Text:  "The leader of five is killed, three times. Another leads after a crash, the term of the dead one has ended, and no two overlap.",
	Needs: []engine.Fault{engine.Kill},
	Check: func(t *engine.Trial) {
		r := t.Race(t.Clients(5), 0)
		var last uint64
		for range 3 {
			g := r.Leader(last, t.Recovery())
			g.Client.Inject(engine.Kill)
			r.Leader(g.Token, t.Crash())
			r.Ends(g, t.Soon())
			last = g.Token
		}
		r.Stop(history.Rules{})
	},
}, {
	ID:    "G1.restart",
	Title: "one leader over restarts of the coordinator",
	Text:  "The coordinator is restarted three times while three candidates hold leadership as long as they can, and three times while they come and go. No leader's Check returns nil after another has won, tokens grow, and somebody leads after recovery.",
	Needs: []engine.Fault{engine.Restart},
	Check: func(t *engine.Trial) {
		for _, hold := range []time.Duration{0, t.Tick()} {
			r := t.Race(t.Clients(3), hold)
			var last uint64
			for range 3 {
				g := r.Leader(last, t.Recovery())
				t.Inject(engine.Restart)
				if hold > 0 {
					last = g.Token
				}
			}
			r.Leader(last, t.Recovery())
			g := r.Leader(0, t.Recovery())
			g.Resign()
			r.Leader(g.Token, t.Recovery())
			r.Stop(history.Rules{})
		}
	},
}, {
	ID:    "G1.pause",
	Title: "one leader over a pause of the coordinator",
	Text:  "The coordinator stands still for less than TTL, and for one and a half times TTL + Slack. After the long one every term from before has ended; somebody leads after recovery; no two terms overlap.",
	Needs: []engine.Fault{engine.Pause, engine.Deadlines},
	Check: func(t *engine.Trial) {
		r := t.Race(t.Clients(3), 0)
		r.Leader(0, t.Recovery())
		resume := t.Inject(engine.Pause)
		t.Pass(t.TTL/4, "a short pause")
		resume()
		g := r.Leader(0, t.Recovery())
		resume = t.Inject(engine.Pause)
		t.Pass((t.TTL+t.Slack)*3/2, "a pause longer than a session")
		r.Ends(g, t.Soon())
		resume()
		r.Leader(g.Token, t.Recovery())
		r.Stop(history.Rules{})
	},
}}
