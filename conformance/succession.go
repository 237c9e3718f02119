package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

var successionRules = []Rule{{
	ID:    "G4.order",
	Title: "leadership goes down the line",
	Text:  "Six candidates join one after the other. Each wins when the one before resigns, and nobody before; who has resigned and campaigns again stands at the end.",
	check: func(t *trial) {
		cs := t.opened(6)
		var line []*standing
		for _, c := range cs {
			line = append(line, c.campaigns(t.ctx))
		}
		line = append(line, nil)
		for i := range cs {
			term := line[i].wins(t.h.soon())
			for _, st := range line[i+1:] {
				if st != nil && returned(st.won) {
					t.fatalf("%s won while %s led", st.c.name, line[i].c.name)
				}
			}
			if err := term.Resign(t.ctx); err != nil {
				t.fatalf("Resign: %v", err)
			}
			if i == 0 {
				line[len(cs)] = cs[0].campaigns(t.ctx)
			}
		}
		line[len(cs)].wins(t.h.soon())
	},
}, {
	ID:    "G4.middle",
	Title: "who leaves from the middle changes nothing in front",
	Text:  "Of six candidates the second, fourth and last give up. The leader's term goes on with its token, nobody wins for half a TTL, and then the third and the fifth win in this order.",
	check: func(t *trial) {
		cs := t.opened(6)
		term := cs[0].campaign()
		line := make([]*standing, len(cs))
		giveUp := make([]context.CancelCauseFunc, len(cs))
		for i := 1; i < len(cs); i++ {
			ctx, cancel := context.WithCancelCause(t.ctx)
			defer cancel(nil)
			giveUp[i] = cancel
			line[i] = cs[i].campaigns(ctx)
		}
		for _, i := range []int{1, 3, 5} {
			giveUp[i](errCancelled)
			if err := await(t, line[i].failed, t.h.soon(), "Campaign has not given up"); !errors.Is(err, errCancelled) {
				t.fatalf("Campaign that was cancelled returned %v; want the cause of its context", err)
			}
		}
		t.steady(t.h.TTL/2, "the leader was disturbed, or another won", func() bool {
			return term.Check() == nil && !returned(line[2].won) && !returned(line[4].won)
		})
		term.Resign(t.ctx)
		third := line[2].wins(t.h.soon())
		if returned(line[4].won) {
			t.fatalf("the fifth won while the third led")
		}
		third.Resign(t.ctx)
		line[4].wins(t.h.soon())
	},
}, {
	ID:    "G4.crash",
	Title: "a crash in the middle changes nothing in front",
	Text:  "Of three candidates the second is killed. For the time of a crash the leader leads on and the third does not win; when the leader resigns after that, the third wins soon.",
	Needs: []Fault{Kill},
	check: func(t *trial) {
		cs := t.opened(3)
		term := cs[0].campaign()
		ctx, cancel := context.WithCancel(t.ctx)
		defer cancel()
		cs[1].campaigns(ctx)
		third := cs[2].campaigns(t.ctx)
		m := cs[0].members()[0]
		cs[1].kill()
		cancel()
		cs[0].t.poll(t.h.crash(), "the dead candidate's member goes", func() bool { return len(cs[0].members()) == 2 })
		t.steady(t.h.TTL/4, "the leader was disturbed, or the third won", func() bool {
			return term.Check() == nil && !returned(third.won)
		})
		if l := cs[0].members(); !same(l[0], m) {
			t.fatalf("the line is %s; want %s first", showLine(l), show(m))
		}
		term.Resign(t.ctx)
		third.wins(t.h.soon())
	},
}}

// queue joins n members of n clients and has each wait for the one in front.
func queue(t *trial, n int) (cs []*client, line []backend.Member, waits []<-chan error) {
	cs = t.opened(n)
	waits = make([]<-chan error, n)
	for i, c := range cs {
		line = append(line, c.join(fmt.Sprint(i)))
		if i > 0 {
			c.behind(line[i], line[i-1])
			waits[i] = c.going(line[i-1])
		}
	}
	return cs, line, waits
}

// handoverCost returns how many requests a handover in a line of n clients takes: the
// fewest that the one who leaves and the next have sent together, from Leave to Ahead, and
// for each bystander the fewest in any handover. A heartbeat, which a client sends now and
// then, is so forgiven, and what each handover makes of a client is not.
func handoverCost(t *trial, n int) int64 {
	cs, line, waits := queue(t, n)
	t.pass(t.h.TTL/10, "until all waits have been set up")
	requests := func() (each []int64) {
		for _, c := range cs {
			each = append(each, c.requests())
		}
		return each
	}
	two := int64(math.MaxInt64)
	bystanders := slices.Repeat([]int64{math.MaxInt64}, n)
	for i := range min(n-1, 20) {
		before := requests()
		cs[i].leave(line[i])
		if err := await(t, waits[i+1], t.h.soon(), "the next in line was not woken"); err != nil {
			t.fatalf("Gone: %v", err)
		}
		cs[i+1].leads(line[i+1])
		sent := requests()
		for j := range sent {
			sent[j] -= before[j]
		}
		two = min(two, sent[i]+sent[i+1])
		for j := range bystanders {
			if j != i && j != i+1 {
				bystanders[j] = min(bystanders[j], sent[j])
			}
		}
	}
	for _, c := range cs {
		c.closeSession()
	}
	cost := two
	for _, b := range bystanders {
		cost += b
	}
	return cost
}

var herdRules = []Rule{{
	ID:    "G5.one",
	Title: "one exit wakes one",
	Text:  "Twenty clients stand in line, each waits for the one in front. Five times the first leaves: the next one's Gone returns soon, and it is first. By then, and by the end, nobody else's Gone has returned.",
	check: func(t *trial) {
		cs, line, waits := queue(t, 20)
		t.pass(t.h.TTL/10, "until all waits have been set up")
		nobodyElse := func(next int) {
			for i := next; i < len(line); i++ {
				if returned(waits[i]) {
					t.fatalf("%s left, and %s, who waits for %s, was woken", show(line[next-2]), show(line[i]), show(line[i-1]))
				}
			}
		}
		for i := range 5 {
			cs[i].leave(line[i])
			if err := await(t, waits[i+1], t.h.soon(), "the next in line was not woken"); err != nil {
				t.fatalf("Gone: %v", err)
			}
			cs[i+1].leads(line[i+1])
			nobodyElse(i + 2)
		}
		t.steady(t.h.TTL/4, "somebody was woken late", func() bool {
			nobodyElse(6)
			return true
		})
	},
}, {
	ID:    "G5.cost",
	Title: "a handover costs the same in a long line",
	Text:  "The requests from Leave to the next one's Ahead are as few in a line of twenty-four as in one of four, give or take two: the fewest that the two of a handover send together, and for each other client the fewest that it sends during any handover, so that heartbeats do not count.",
	Needs: []Fault{Requests},
	check: func(t *trial) {
		small := handoverCost(t, 4)
		if large := handoverCost(t, 24); large > small+2 {
			t.fatalf("a handover takes %d requests in a line of 24, and %d in a line of 4", large, small)
		}
	},
}, {
	ID:    "G5.rest",
	Title: "a candidate at rest is quiet",
	Text:  "Six candidates wait behind a leader for three TTL. Each of the last four sends at most 8 requests per TTL, heartbeats and the slow re-check included.",
	Needs: []Fault{Requests},
	check: func(t *trial) {
		cs := t.opened(7)
		cs[0].campaign()
		for _, c := range cs[1:] {
			c.campaigns(t.ctx)
		}
		t.pass(t.h.TTL/4, "until all wait")
		before := make([]int64, len(cs))
		for i, c := range cs {
			before[i] = c.requests()
		}
		began := time.Now()
		t.pass(3*t.h.TTL, "while nothing happens")
		for i, c := range cs[3:] {
			n := c.requests() - before[3+i]
			if limit := int64(8*time.Since(began)/t.h.TTL) + 2; n > limit {
				t.fatalf("%s sent %d requests in three TTL while it waited", c.name, n)
			}
		}
	},
}}
