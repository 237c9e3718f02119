package conformance

import (
	"fmt"
	"time"

	"github.com/succession-dev/succession/internal/history"
)

// deposes is a rule for a fault that hits the leader alone, four times: the next
// one leads within a crash, and the old one has learnt of its loss.
func deposes(fault func(t *trial, r *race, g *reign) (undo func()), notice func(*trial) time.Duration) func(*trial) {
	return func(t *trial) {
		cs := t.opened(4)
		r := t.race(cs, 0)
		var last uint64
		for range 4 {
			g := r.leader(last, t.h.recovery())
			undo := fault(t, r, g)
			r.leader(g.token, t.h.crash())
			r.ends(g, t.h.soon())
			undo()
			last = g.token
		}
		r.stop(history.Rules{Notice: notice(t)})
	}
}

// late has a client lead in front of the rest, cuts it off for d, and waits until somebody
// leads again.
func (r *race) late(leader *client, rest []*client, d time.Duration) {
	r.enter(leader, watch{}, 0)
	r.leader(0, r.t.h.recovery())
	for _, c := range rest {
		await(r.t, r.enter(c.in(leader.line), watch{}, 0), r.t.h.recovery(), c.name+" has not joined")
	}
	heal := leader.cut()
	r.t.pass(d, "before the leader is healed")
	heal()
	r.leader(0, r.t.h.recovery())
}

func none(*trial) time.Duration { return 0 }

var leaderRules = []Rule{{
	ID:    "G1.churn",
	Title: "one leader while all come and go",
	Text:  "Five candidates campaign, lead for a moment, resign and campaign again, for forty terms. No leader's Check returns nil after another has won, and tokens grow in the order of winning.",
	check: func(t *trial) {
		r := t.race(t.opened(5), t.tick())
		t.poll(t.h.limit(), "forty terms come to pass", func() bool { return r.count() >= 40 })
		r.stop(history.Rules{})
	},
}, {
	ID:    "G1.cut",
	Title: "one leader when the leader is cut off",
	Text:  "The leader of four is cut off, another leads after a crash, and the old one is healed; four times. No leader's Check returns nil after another has won, and tokens grow.",
	Needs: []Fault{Cut, Deadlines},
	check: deposes(func(t *trial, r *race, g *reign) func() { return g.c.cut() }, none),
}, {
	ID:    "G1.deaf",
	Title: "one leader when answers are lost",
	Text:  "As G1.cut, when the leader's requests arrive and the answers do not; there may be another leader only when the coordinator has ended the session. The old one learns of its loss within TTL: by then its deadline has passed, whichever request was answered last.",
	Needs: []Fault{Deafen, Deadlines},
	check: func(t *trial) {
		r := t.race(t.opened(4), 0)
		var last uint64
		for range 4 {
			g := r.leader(last, t.h.recovery())
			heal := g.c.deafen()
			r.ends(g, t.h.TTL+t.tick()) // a tick for the looking
			heal()
			r.leader(g.token, t.h.recovery())
			last = g.token
		}
		r.stop(history.Rules{})
	},
}, {
	ID:    "G1.late",
	Title: "one leader when the leader is healed in the nick of time",
	Text:  "The leaders of eleven elections, of three candidates each, are cut off and healed about when their sessions end: each at a moment of its own, from a half to one and a half times TTL + Slack. Whether or not they go on leading, no leader's Check returns nil after another has won, tokens grow, and somebody leads after recovery.",
	Needs: []Fault{Cut, Deadlines},
	check: func(t *trial) {
		whole := t.h.TTL + t.h.Slack
		rest := t.opened(2)
		var races []*race
		var healed []<-chan error
		for i := range 11 {
			line := fmt.Sprintf("%s-%d", t.line, i)
			r, leader := t.newRace(), t.client().in(line)
			races = append(races, r)
			healed = append(healed, t.async(func() error {
				r.late(leader, rest, whole/2+time.Duration(i)*whole/10)
				return nil
			}))
		}
		terms := 0
		for i, r := range races {
			await(t, healed[i], t.h.limit(), "nobody leads after the leader was healed")
			r.end()
			terms += r.count()
		}
		if terms == len(races) {
			t.fatalf("no term has ended: the rule has shown nothing")
		}
		t.judge(history.Rules{}, nil)
	},
}, {
	ID:    "G1.expire",
	Title: "one leader when sessions are ended",
	Text:  "The coordinator ends the session of the leader of four, four times. A healthy leader is told of that and does not foresee it: its Check may return nil until soon after another has won, and no longer. Tokens grow.",
	Needs: []Fault{Expire},
	check: deposes(func(t *trial, r *race, g *reign) func() {
		g.c.expire()
		return func() {}
	}, soon),
}, {
	ID:    "G1.kill",
	Title: "one leader when clients crash",
	Text:  "The leader of five is killed, three times. Another leads after a crash, the term of the dead one has ended, and no two overlap.",
	Needs: []Fault{Kill},
	check: func(t *trial) {
		r := t.race(t.opened(5), 0)
		var last uint64
		for range 3 {
			g := r.leader(last, t.h.recovery())
			g.c.kill()
			r.leader(g.token, t.h.crash())
			r.ends(g, t.h.soon())
			last = g.token
		}
		r.stop(history.Rules{})
	},
}, {
	ID:    "G1.restart",
	Title: "one leader over restarts of the coordinator",
	Text:  "The coordinator is restarted three times while three candidates hold leadership as long as they can, and three times while they come and go. No leader's Check returns nil after another has won, tokens grow, and somebody leads after recovery.",
	Needs: []Fault{Restart},
	check: func(t *trial) {
		for _, hold := range []time.Duration{0, t.tick()} {
			r := t.race(t.opened(3), hold)
			var last uint64
			for range 3 {
				g := r.leader(last, t.h.recovery())
				t.restart()
				if hold > 0 {
					last = g.token
				}
			}
			r.leader(last, t.h.recovery())
			g := r.leader(0, t.h.recovery())
			g.resign()
			r.leader(g.token, t.h.recovery())
			r.stop(history.Rules{})
		}
	},
}, {
	ID:    "G1.pause",
	Title: "one leader over a pause of the coordinator",
	Text:  "The coordinator stands still for less than TTL, and for one and a half times TTL + Slack. After the long one every term from before has ended; somebody leads after recovery; no two terms overlap.",
	Needs: []Fault{Pause, Deadlines},
	check: func(t *trial) {
		r := t.race(t.opened(3), 0)
		r.leader(0, t.h.recovery())
		resume := t.pause()
		t.pass(t.h.TTL/4, "a short pause")
		resume()
		g := r.leader(0, t.h.recovery())
		resume = t.pause()
		t.pass((t.h.TTL+t.h.Slack)*3/2, "a pause longer than a session")
		r.ends(g, t.h.soon())
		resume()
		r.leader(g.token, t.h.recovery())
		r.stop(history.Rules{})
	},
}}
