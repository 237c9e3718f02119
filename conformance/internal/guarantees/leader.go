package guarantees

import (
	"fmt"
	"time"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/history"
)

// late makes a client lead in front of the rest, cuts it off for d, and waits until somebody
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

var leaderRules = []engine.Rule{{
	ID: "G1.churn", Title: "one leader while all come and go",
	Text: "Five candidates campaign, lead for a moment, resign and campaign again, for forty terms. No leader's Check returns nil after another has won, and tokens grow in the order of winning.",
	Check: func(t *engine.Trial) {
		t.Judged(history.Rules{})
		r := t.Race(t.Clients(5), t.Tick())
		t.Eventually(t.Limit(), "forty terms come to pass", func() bool { return r.Count() >= 40 })
		r.Stop()
	},
}, {
	ID: "G1.cut", Title: "one leader when the leader is cut off",
	Text:  "The leader of four is cut off, another leads after a crash, and the old one is healed; four times. No leader's Check returns nil after another has won, and tokens grow.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines}, Check: func(t *engine.Trial) {
		t.Judged(history.Rules{})
		r := t.Race(t.Clients(4), 0)
		var last uint64
		for range 4 {
			g := r.Leader(last, t.Recovery())
			heal := g.Client.Inject(engine.Cut)
			r.Leader(g.Token, t.Crash())
			r.Ends(g, t.Soon())
			heal()
			last = g.Token
		}
		r.Stop()
	},
}, {
	ID: "G1.late", Title: "one leader when the leader is healed in the nick of time",
	Text:  "The leaders of eleven elections, of three candidates each, are cut off and healed about when their sessions end: each at a moment of its own, from a half to one and a half times TTL + Slack. Whether or not they go on leading, no leader's Check returns nil after another has won, tokens grow, and somebody leads after recovery.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines}, Crowd: true, Check: func(t *engine.Trial) {
		t.Judged(history.Rules{})
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
	},
}, {
	ID: "G1.promoted", Title: "one leader when a standby takes over that has not heard of the leader",
	Text:  "Of a coordinator with a primary and a standby, the standby receives nothing more. Then three candidates join, and one leads for a while. It is cut off, the primary dies, and the standby takes over. Somebody leads after recovery; the old leader's Check does not return nil after that, and tokens grow.",
	Needs: []engine.Fault{engine.Promote, engine.Cut, engine.Deadlines}, Check: func(t *engine.Trial) {
		t.Judged(history.Rules{})
		s := t.Standby(engine.Promote)
		cs := t.Clients(3)
		for _, c := range cs { // the standby knows their sessions, and nothing else
			c.Live()
		}
		s.Lags()
		r := t.Race(cs, 0)
		g := r.Leader(0, t.Recovery())
		t.Pass(t.TTL/2, "in which the leader's deadline moves")
		heal := g.Client.Inject(engine.Cut)
		s.TakesOver()
		r.Leader(g.Token, t.Recovery())
		r.Ends(g, t.Soon())
		heal()
		r.Stop()
	},
}, {
	ID: "G1.promoted-beside", Title: "one leader when a standby takes over while the primary serves on",
	Text:  "Of a coordinator with a primary that acknowledges only what its standby has, three candidates join, and one leads. The standby takes over, and the primary serves on. Somebody leads after recovery; the old leader's Check does not return nil after that, and tokens grow.",
	Needs: []engine.Fault{engine.PromoteBeside, engine.Deadlines}, Check: func(t *engine.Trial) {
		t.Judged(history.Rules{})
		s := t.Standby(engine.PromoteBeside)
		r := t.Race(t.Clients(3), 0)
		g := r.Leader(0, t.Recovery())
		t.Pass(t.TTL/2, "in which the leader's deadline moves")
		s.TakesOver()
		r.Leader(g.Token, t.Recovery())
		r.Ends(g, t.Soon())
		r.Stop()
	},
}}
