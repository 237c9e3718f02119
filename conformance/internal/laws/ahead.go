package laws

import (
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

var aheadRules = []engine.Rule{{
	ID: "L2.order", Title: "each stands behind the one in front",
	Text: "In a line of eight of three clients, Ahead names for each member the one just in front of it in the order of positions, and says First for the first alone, with the token fence + position.",
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		var line []backend.Member
		for i := range 8 {
			line = append(line, cs[i%3].Join(fmt.Sprint(i)))
		}
		if token, fence := cs[0].First(line[0], engine.Now), cs[0].Line().Header.Fence; token != fence+line[0].Position {
			t.Never("the token of %s is %d; want fence %d + position %d", engine.Show(line[0]), token, fence, line[0].Position)
		}
		for i := 1; i < len(line); i++ {
			cs[i%3].Behind(line[i], line[i-1])
		}
	},
}, {
	ID: "L2.after-join", Title: "Ahead is as fresh as Join",
	Text: "A client joins after another's Join has returned. Its next Ahead sees the other in front, thirty times in turn.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		front := a.Join("first")
		for range 30 {
			m := b.Join("next")
			b.Behind(m, front)
			a.Leave(front)
			b.Gone(front).Returns(t.Soon())
			front = m
			a, b = b, a
		}
	},
}, {
	ID: "L2.after-gone", Title: "Ahead is as fresh as Gone",
	Text: "When Gone has returned for the member in front, the next Ahead of the same session says First, thirty times in turn.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		front := a.Join("first")
		for range 30 {
			m := b.Join("next")
			b.Behind(m, front)
			going := b.Gone(front)
			a.Leave(front)
			going.Returns(t.Soon())
			b.First(m, engine.Now)
			front = m
			a, b = b, a
		}
	},
}, {
	ID: "L2.join-place", Title: "who joins is told the truth",
	Text:  "Ten times the fence is raised, a record comes or goes, one joins the empty line, another joins behind it, and both leave: what Join tells of the place is what Ahead says, and what it tells of the record is what Get says. Now and then it may tell neither.",
	Needs: []engine.Fault{engine.Records, engine.Places}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		record, places, records := t.Name+"-kept", 0, 0
		for i := range 10 {
			a.PutFence(10)
			if i%2 == 0 {
				a.Put(record, fmt.Sprint(i), nil)
			} else {
				a.Do(engine.Delete(record, nil))
			}
			var line []backend.Member
			for _, c := range []*engine.Client{a, b} {
				j := c.JoinTold("x", record)
				line = append(line, j.Member)
				if j.Place != nil {
					places++
					if want := c.Ahead(j.Member); *j.Place != want {
						t.Fatalf("Join says %s with the header %+v, and Ahead %s with %+v", engine.ShowPlace(*j.Place), j.Place.Header, engine.ShowPlace(want), want.Header)
					}
				}
				if j.Record != nil {
					records++
					c.Has(record, string(j.Record.Value), j.Record.Version)
				}
			}
			a.Leave(line[0])
			b.Leave(line[1])
		}
		if places == 0 || records == 0 {
			t.Fatalf("of twenty joins, %d told a place and %d the record", places, records)
		}
	},
}, {
	ID: "L2.churn", Title: "who has gone never comes back",
	Text: "Four clients join, wait their turn by Ahead and Gone, and leave, ten times each at once. No Ahead names a member for which Gone or Leave of the same session has returned.",
	Check: func(t *engine.Trial) {
		var calls []*engine.Call
		for _, c := range t.Clients(4) {
			calls = append(calls, t.Go("the churn", func() error {
				departed := make(map[backend.Member]bool) // by line, key and position
				for range 10 {
					m := c.Join(c.Name)
					for {
						p := c.Ahead(m)
						if p.First {
							break
						}
						front := backend.Member{Line: p.Ahead.Line, Key: p.Ahead.Key, Position: p.Ahead.Position}
						if departed[front] {
							t.Never("%s: Ahead names %s, which had gone", c.Name, engine.Show(front))
						}
						c.Gone(p.Ahead).Returns(t.Crash())
						departed[front] = true
					}
					c.Leave(m)
					departed[backend.Member{Line: m.Line, Key: m.Key, Position: m.Position}] = true
				}
				return nil
			}))
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
	},
}, {
	ID: "L2.line", Title: "Line never goes back",
	Text: "Five times a client joins, is seen by another, leaves, and is seen no more: it is in none of the next six answers to the other. While two clients join and leave forty times, no answer has a member that an earlier one did not have any more.",
	Check: func(t *engine.Trial) {
		watcher, passer := t.Client(), t.Client()
		for range 5 {
			m := passer.Join("x")
			watcher.Shows(t.Soon(), m)
			passer.Leave(m)
			watcher.Shows(t.Soon())
			for range 6 {
				watcher.Shows(engine.Now)
			}
		}
		var calls []*engine.Call
		for _, c := range t.Clients(2) {
			calls = append(calls, t.Go("the churn", func() error {
				for range 40 {
					c.Leave(c.Join(c.Name))
				}
				return nil
			}))
		}
		newest := uint64(0)
		var last []backend.Member
		for !calls[0].Returned() || !calls[1].Returned() {
			now := watcher.Members()
			for _, m := range now {
				if m.Position <= newest && !slices.Contains(last, m) {
					t.Fatalf("%s came back: the line was %s, with position %d seen, and then %s", engine.Show(m), engine.ShowLine(last), newest, engine.ShowLine(now))
				}
			}
			for _, m := range now {
				newest = max(newest, m.Position)
			}
			last = now
			t.Pass(t.Tick(), "before the next look")
		}
	},
}, {
	ID: "L2.left", Title: "who left is not in line",
	Text: "Ahead of a member that its own session took out fails with ErrNotMember, at the head, in the middle and at the end of the line.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		line := []backend.Member{a.Join("0"), b.Join("1"), a.Join("2"), b.Join("3"), a.Join("4")}
		for _, i := range []int{0, 2, 4} {
			a.Leave(line[i])
			a.Fails(engine.Ahead(line[i]), backend.ErrNotMember)
		}
		b.First(line[1], engine.Now)
		b.Behind(line[3], line[1])
	},
}, {
	ID: "L2.removed", Title: "who was removed is not in line",
	Text:  "When an operator has removed a member, at the head or behind another, Ahead of it fails with ErrNotMember, and never with First.",
	Needs: []engine.Fault{engine.Remove}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		head, middle, last := a.Join("0"), b.Join("1"), a.Join("2")
		removed := func(c *engine.Client, m backend.Member) {
			t.Remove(m)
			c.Gone(m).Returns(t.Soon()) // makes the session as fresh as the removal
			c.Fails(engine.Ahead(m), backend.ErrNotMember)
		}
		removed(b, middle)
		removed(a, head) // the last one: then a knows of both
		a.First(last, engine.Now)
	},
}, {
	ID: "L2.cost", Title: "Ahead costs the same in a long line",
	Text:  "Ahead sends no more requests in a line of twenty than in a line of three: the fewest of five calls are compared.",
	Needs: []engine.Fault{engine.Requests}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		fewest := func(m backend.Member) int64 {
			best := int64(1 << 62)
			for range 5 {
				before := a.Requests()
				a.Ahead(m)
				best = min(best, a.Requests()-before)
			}
			return best
		}
		b.Join("0")
		b.Join("1")
		small := fewest(a.Join("2"))
		for range 16 {
			b.Join("x")
		}
		if large := fewest(a.Join("19")); large > small {
			t.Fatalf("Ahead sends %d requests in a line of 20 and %d in a line of 3", large, small)
		}
	},
}}
