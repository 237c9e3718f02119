package laws

import (
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/header"
)

var shareRules = []engine.Rule{{
	ID: "L9.together", Title: "shared members are first together",
	Text:  "Three clients join as shared members. Each is first at once, with the token fence + position of its own; the line has them in the order of joining, and says that they are shared. A member that is not shared stands behind the last of them.",
	Needs: []engine.Fault{engine.Shares},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		var want []backend.Member
		for _, c := range cs[:3] {
			m := c.JoinShared(c.Name)
			if token, fence := c.First(m, engine.Now), c.Line().Header.Fence; token != fence+m.Position {
				t.Never("the token of %s is %d; want fence %d + position %d", engine.Show(m), token, fence, m.Position)
			}
			want = append(want, m)
		}
		alone := cs[3].Join("alone")
		cs[3].Behind(alone, want[2])
		cs[3].Shows(engine.Now, append(want, alone)...)
		for i, m := range cs[3].Members() {
			if m.Shared != (i < 3) || m.Value != append(want, alone)[i].Value {
				t.Fatalf("the line shows %+v in place %d", m, i)
			}
		}
	},
}, {
	ID: "L9.passes", Title: "a shared member passes over those that are shared alone",
	Text:  "In the line alone, shared, shared, alone, shared, each stands behind whom it waits for: the shared ones behind the nearest that is not shared, the others behind whoever is just in front. When the first leaves, both shared ones behind it are first; the next is when both have left, in whichever order; and then the last.",
	Needs: []engine.Fault{engine.Shares},
	Check: func(t *engine.Trial) {
		for _, front := range []int{1, 2} { // which of the two shared members leaves first
			cs := t.Clients(5)
			election := t.Name + []string{"", "-1", "-2"}[front]
			var line []backend.Member
			for i, c := range cs {
				cs[i] = c.In(election)
				if i == 0 || i == 3 {
					line = append(line, cs[i].Join("alone"))
				} else {
					line = append(line, cs[i].JoinShared("shared"))
				}
			}
			cs[1].Behind(line[1], line[0])
			cs[2].Behind(line[2], line[0])
			cs[3].Behind(line[3], line[2])
			cs[4].Behind(line[4], line[3])
			one, two := cs[1].Gone(line[0]), cs[2].Gone(line[0])
			cs[0].Leave(line[0])
			one.Returns(t.Soon())
			two.Returns(t.Soon())
			cs[1].First(line[1], engine.Now)
			cs[2].First(line[2], engine.Now)
			left := 3 - front
			cs[front].Leave(line[front])
			t.Eventually(t.Soon(), "the member that is not shared stands behind the shared one that is left", func() bool {
				p := cs[3].Ahead(line[3])
				if p.First {
					t.Fatalf("%s is first while %s stands in front of it", engine.Show(line[3]), engine.Show(line[left]))
				}
				return engine.Same(p.Ahead, line[left])
			})
			going := cs[3].Gone(line[left])
			cs[left].Leave(line[left])
			going.Returns(t.Soon())
			cs[3].First(line[3], engine.Now)
			cs[4].Behind(line[4], line[3])
			last := cs[4].Gone(line[3])
			cs[3].Leave(line[3])
			last.Returns(t.Soon())
			cs[4].First(line[4], engine.Now)
		}
	},
}, {
	ID: "L9.woken", Title: "a shared member is woken by whom it waits for alone",
	Text:  "While a shared member waits, those that are shared and stand in front of it, and those behind it, leave: it is not woken. When the member leaves that it waits for, it is.",
	Needs: []engine.Fault{engine.Shares},
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		front, other, m, behind := cs[0].Join("alone"), cs[1].JoinShared("other"), cs[2].JoinShared("waits"), cs[3].Join("behind")
		p := cs[2].Ahead(m)
		waiting := cs[2].Gone(p.Ahead)
		cs[1].Leave(other)
		cs[3].Leave(behind)
		t.Always(t.TTL/10, "Gone has returned although the member stands", func() bool { return !waiting.Returned() })
		cs[0].Leave(front)
		waiting.Returns(t.Soon())
		cs[2].First(m, engine.Now)
	},
}, {
	ID: "L9.deadline", Title: "the deadline of each that is first is kept ahead",
	Text:  "Three shared members are first, two of one client and one of another. For two TTL the deadline of each session is in the future, and at most a TTL away.",
	Needs: []engine.Fault{engine.Shares, engine.Deadlines},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		for _, c := range []*engine.Client{a, a, b} {
			c.First(c.JoinShared(c.Name), engine.Now)
		}
		t.Always(2*t.TTL, "the deadline of a shared member that is first is in the past, or more than TTL away", func() bool {
			for _, c := range []*engine.Client{a, b} {
				s := c.Live()
				if left := time.Until(deadlineNow(s)); left <= 0 || left > s.TTL()+engine.Grain {
					return false
				}
			}
			return true
		})
	},
}, {
	ID: "L9.cut", Title: "the deadline of a shared member passes before it goes",
	Text:  "A shared member that is first behind another shared one is cut off. The member behind it, which is not shared, is not first before the deadline has passed, and is after a crash, when the other one has left.",
	Needs: []engine.Fault{engine.Shares, engine.Deadlines, engine.Cut},
	Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		other, m, alone := a.JoinShared("other"), b.JoinShared("cut off"), c.Join("alone")
		a.First(other, engine.Now)
		b.First(m, engine.Now)
		c.Behind(alone, m)
		s := b.Live()
		b.Inject(engine.Cut)
		a.Leave(other)
		t.Eventually(t.Crash(), "the member behind the one that is cut off is first", func() bool {
			passed := time.Until(s.Deadline()) <= 0 // read before the line
			p := c.Ahead(alone)
			if p.First && !passed && time.Until(s.Deadline()) > engine.Grain {
				t.Never("%s is first %v before the deadline of %s", engine.Show(alone), time.Until(s.Deadline()), engine.Show(m))
			}
			return p.First
		})
	},
}, {
	ID: "L9.lost-answer", Title: "a lost answer of JoinShared leaves one member",
	Text:  "Where the answer of JoinShared is lost after it took effect, the client has one shared member in line when the time of a crash has passed, or none if the call failed.",
	Needs: []engine.Fault{engine.Shares, engine.LoseAnswer},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		front := b.JoinShared("front")
		_, err := a.Loses(engine.JoinShared(t.Name, "lost"), nil, backend.ErrUnavailable, backend.ErrSessionEnded)
		t.Pass(t.Crash(), "in which what is on its way may come and go")
		switch l := b.Members(); {
		case len(l) == 0 || !engine.Same(l[0], front) || len(l) > 2:
			t.Fatalf("the line is %s; want %s and the one that joined", engine.ShowLine(l), engine.Show(front))
		case err == nil && (len(l) != 2 || !l[1].Shared || l[1].Value != "lost"):
			t.Fatalf("JoinShared has succeeded, and the line is %s", engine.ShowLine(l))
		case err != nil && len(l) != 1:
			t.Fatalf("JoinShared has failed with %v, and the line is %s", err, engine.ShowLine(l))
		}
	},
}, {
	ID: "L9.ends", Title: "shared members go with their session",
	Text:  "When a session is closed, its shared members leave the line, and who waits behind them is woken soon.",
	Needs: []engine.Fault{engine.Shares},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		a.JoinShared("one")
		m := a.JoinShared("two")
		alone := b.Join("alone")
		b.Behind(alone, m)
		going := b.Gone(m)
		a.CloseSession()
		going.Returns(t.Soon())
		b.First(alone, t.Soon())
		b.Shows(t.Soon(), alone)
	},
}, {
	ID: "L9.sealed", Title: "a seal holds up shared members too",
	Text:  "A shared member joins behind a leader that then seals the election: its Ahead fails with a SealedError with the address. So does that of a shared member that joins afterwards.",
	Needs: []engine.Fault{engine.Shares, engine.Pins},
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		seal := a.Join("seal")
		m := b.JoinShared("before")
		b.Behind(m, seal)
		a.Pin(seal, func(h *header.Header) { h.Sealed = "memory:elsewhere" })
		for _, m := range []backend.Member{m, b.JoinShared("after")} {
			var err error
			t.Eventually(t.Soon(), "Ahead of a shared member behind a seal fails", func() bool {
				err = b.Try(engine.Ahead(m))
				return err != nil
			})
			if to := engine.SealedTo(err); to != "memory:elsewhere" {
				t.Fatalf("Ahead failed with %v; want a SealedError with the address", err)
			}
		}
	},
}}
