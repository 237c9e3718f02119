package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

var aheadRules = []Rule{{
	ID:    "L2.order",
	Title: "each stands behind the one in front",
	Text:  "In a line of eight of three clients, Ahead names for each member the one just in front of it in the order of positions, and says First for the first alone, with the token fence + position.",
	check: func(t *trial) {
		cs := t.opened(3)
		var line []backend.Member
		for i := range 8 {
			line = append(line, cs[i%3].join(fmt.Sprint(i)))
		}
		if token, fence := cs[0].leads(line[0]), cs[0].lineNow().Header.Fence; token != fence+line[0].Position {
			t.fatalf("the token of %s is %d; want fence %d + position %d", show(line[0]), token, fence, line[0].Position)
		}
		for i := 1; i < len(line); i++ {
			cs[i%3].behind(line[i], line[i-1])
		}
	},
}, {
	ID:    "L2.after-join",
	Title: "Ahead is as fresh as Join",
	Text:  "A client joins after another's Join has returned. Its next Ahead sees the other in front, thirty times in turn.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		front := a.join("first")
		for range 30 {
			m := b.join("next")
			b.behind(m, front)
			a.leave(front)
			b.gone(front, t.h.soon())
			front = m
			a, b = b, a
		}
	},
}, {
	ID:    "L2.after-gone",
	Title: "Ahead is as fresh as Gone",
	Text:  "When Gone has returned for the member in front, the next Ahead of the same session says First, thirty times in turn.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		front := a.join("first")
		for range 30 {
			m := b.join("next")
			b.behind(m, front)
			going := b.going(front)
			a.leave(front)
			if err := await(t, going, t.h.soon(), "Gone has not returned after Leave"); err != nil {
				t.fatalf("Gone: %v", err)
			}
			b.leads(m)
			front = m
			a, b = b, a
		}
	},
}, {
	ID:    "L2.churn",
	Title: "who has gone never comes back",
	Text:  "Four clients join, wait their turn by Ahead and Gone, and leave, ten times each at once. No Ahead names a member for which Gone or Leave of the same session has returned.",
	check: func(t *trial) {
		var done []<-chan error
		for _, c := range t.opened(4) {
			done = append(done, t.async(func() error {
				departed := make(map[backend.Member]bool) // by line, key and position
				for range 10 {
					m := c.join(c.name)
					for {
						p := c.ahead(m)
						if p.First {
							break
						}
						front := backend.Member{Line: p.Ahead.Line, Key: p.Ahead.Key, Position: p.Ahead.Position}
						if departed[front] {
							t.fatalf("%s: Ahead names %s, which had gone", c.name, show(front))
						}
						c.gone(p.Ahead, t.h.crash())
						departed[front] = true
					}
					c.leave(m)
					departed[backend.Member{Line: m.Line, Key: m.Key, Position: m.Position}] = true
				}
				return nil
			}))
		}
		for _, d := range done {
			await(t, d, t.h.limit(), "the churn has not come to its end")
		}
	},
}, {
	ID:    "L2.line",
	Title: "Line never goes back",
	Text:  "Five times a client joins, is seen by another, leaves, and is seen no more: it is in none of the next six answers to the other. While two clients join and leave forty times, no answer has a member that an earlier one did not have any more.",
	check: func(t *trial) {
		watcher, passer := t.client(), t.client()
		for range 5 {
			m := passer.join("x")
			watcher.showsWithin(t.h.soon(), m)
			passer.leave(m)
			watcher.showsWithin(t.h.soon())
			for range 6 {
				watcher.showsNow()
			}
		}
		var done []<-chan error
		for _, c := range t.opened(2) {
			done = append(done, t.async(func() error {
				for range 40 {
					c.leave(c.join(c.name))
				}
				return nil
			}))
		}
		newest := uint64(0)
		var last []backend.Member
		for !returned(done[0]) || !returned(done[1]) {
			now := watcher.members()
			for _, m := range now {
				if m.Position <= newest && !slices.Contains(last, m) {
					t.fatalf("%s came back: the line was %s, with position %d seen, and then %s", show(m), showLine(last), newest, showLine(now))
				}
			}
			for _, m := range now {
				newest = max(newest, m.Position)
			}
			last = now
			t.breathe()
		}
	},
}, {
	ID:    "L2.left",
	Title: "who left is not in line",
	Text:  "Ahead of a member that its own session took out fails with ErrNotMember, at the head, in the middle and at the end of the line.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		line := []backend.Member{a.join("0"), b.join("1"), a.join("2"), b.join("3"), a.join("4")}
		for _, i := range []int{0, 2, 4} {
			a.leave(line[i])
			if err := a.aheadFails(line[i]); !is(err, backend.ErrNotMember) {
				t.fatalf("Ahead of a member that left failed with %v; want ErrNotMember", err)
			}
		}
		b.leads(line[1])
		b.behind(line[3], line[1])
	},
}, {
	ID:    "L2.removed",
	Title: "who was removed is not in line",
	Text:  "When an operator has removed a member, at the head or behind another, Ahead of it fails with ErrNotMember, and never with First.",
	Needs: []Fault{Remove},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		head, middle, last := a.join("0"), b.join("1"), a.join("2")
		for c, m := range map[*client]backend.Member{a: head, b: middle} {
			t.remove(m)
			c.gone(m, t.h.soon()) // makes the session as fresh as the removal
			if err := c.aheadFails(m); !is(err, backend.ErrNotMember) {
				t.fatalf("Ahead of a removed member failed with %v; want ErrNotMember", err)
			}
		}
		a.leads(last)
	},
}, {
	ID:    "L2.cost",
	Title: "Ahead costs the same in a long line",
	Text:  "Ahead sends no more requests in a line of twenty than in a line of three: the fewest of five calls are compared.",
	Needs: []Fault{Requests},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		fewest := func(m backend.Member) int64 {
			best := int64(1 << 62)
			for range 5 {
				before := a.requests()
				a.ahead(m)
				best = min(best, a.requests()-before)
			}
			return best
		}
		b.join("0")
		b.join("1")
		small := fewest(a.join("2"))
		for range 16 {
			b.join("x")
		}
		if large := fewest(a.join("19")); large > small {
			t.fatalf("Ahead sends %d requests in a line of 20 and %d in a line of 3", large, small)
		}
	},
}}

// breathe gives others a moment, one tick long.
func (t *trial) breathe() {
	timer := time.NewTimer(t.tick())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ctx.Done():
		t.fatalf("the rule was cut short: %v", context.Cause(t.ctx))
	}
}
