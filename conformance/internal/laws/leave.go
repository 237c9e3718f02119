package laws

import (
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

var leaveRules = []engine.Rule{{
	ID: "L4.again", Title: "leaving twice is not an error",
	Text: "Leave of a member that has left returns nil, at once and after others have joined, and takes out nobody else, also when a crash has passed.",
	Check: func(t *engine.Trial) {
		a := t.Client()
		m := a.Join("x")
		a.Leave(m)
		a.Leave(m)
		later := a.Join("y")
		a.Leave(m)
		last := a.Join("z")
		a.Shows(engine.Now, later, last)
		a.Settles(later, last)
	},
}, {
	ID: "L4.removed", Title: "leaving after a removal is not an error",
	Text:  "Leave of a member that an operator has removed returns nil, and takes out nobody else.",
	Needs: []engine.Fault{engine.Remove}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m, other := a.Join("x"), b.Join("y")
		t.Remove(m)
		a.Leave(m)
		b.Shows(t.Soon(), other)
	},
}, {
	ID: "L4.middle", Title: "only that member leaves",
	Text: "When the second, the last and the first of five leave in turn, the line shows exactly the others each time.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		var line []backend.Member
		for range 5 {
			line = append(line, a.Join("x"))
		}
		a.Leave(line[1])
		b.Shows(t.Soon(), line[0], line[2], line[3], line[4])
		a.Leave(line[4])
		b.Shows(t.Soon(), line[0], line[2], line[3])
		a.Leave(line[0])
		b.Shows(t.Soon(), line[2], line[3])
	},
}, {
	ID: "L4.foreign", Title: "another's member is not taken out",
	Text: "Leave of a member that another session joined, and that is not pinned, is refused or does nothing: it stands on, also when a crash has passed.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m, mine := a.Join("x"), b.Join("y")
		_ = b.Try(engine.Leave(m))
		last := b.Join("z")
		b.Shows(engine.Now, m, mine, last)
		b.Settles(m, mine, last)
		a.First(m, engine.Now)
	},
}, {
	ID: "L4.same-key", Title: "a member under the same key is not taken out",
	Text: "Leave of a member that had the key of one who stands, at an earlier position, is refused or does nothing: the one who stands does so on, also when a crash has passed.",
	Check: func(t *engine.Trial) {
		a := t.Client()
		a.Leave(a.Join("x"))
		m := a.Join("y")
		old := m
		old.Position--
		_ = a.Try(engine.Leave(old))
		last := a.Join("z")
		a.Shows(engine.Now, m, last)
		a.Settles(m, last)
		a.First(m, engine.Now)
	},
}, {
	ID: "L4.dropped", Title: "the new line is safe from who stood in the old",
	Text:  "An operator deletes the election, and others join. Leave of the old members by their session takes out none of the new, whatever keys these have, also when a crash has passed.",
	Needs: []engine.Fault{engine.Drop}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		old := []backend.Member{a.Join("0"), a.Join("1"), a.Join("2")}
		t.Drop(t.Name)
		b.Gone(old[2]).Returns(t.Soon())
		line := []backend.Member{b.Join("0"), b.Join("1"), b.Join("2")}
		for _, m := range old {
			_ = a.Try(engine.Leave(m))
		}
		line = append(line, b.Join("last"))
		b.Shows(engine.Now, line...)
		b.Settles(line...)
	},
}, {
	ID: "L4.ended", Title: "leaving after the end of the session",
	Text:  "After the coordinator has ended the session, Leave fails with ErrSessionEnded, the member is gone, and one that the client joined under its next session stands.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		s, m := a.Live(), a.Join("x")
		a.Expires()
		next := a.Join("y")
		ctx, cancel := t.Within(t.Soon())
		defer cancel()
		t.Want("Leave under an ended session", s.Leave(ctx, m), backend.ErrSessionEnded)
		b.Shows(t.Soon(), next)
	},
}, {
	ID: "L4.lost-answer", Title: "a lost answer of Leave does not bring the member back",
	Text:  "Where the answer of Leave is lost, the member is gone soon, Leave returns nil or ErrUnavailable within a crash, and the others stand. When a crash has passed it is still so.",
	Needs: []engine.Fault{engine.LoseAnswer}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		first, m, last := b.Join("0"), a.Join("1"), a.Join("2")
		a.Loses(engine.Leave(m), nil, backend.ErrUnavailable)
		b.Shows(t.Soon(), first, last)
		b.Settles(first, last)
	},
}, {
	ID: "L4.held", Title: "a request to leave that comes late takes out nobody else",
	Text:  "A request of Leave is held back on its way. Where Leave returns nil all the same, the client joins again before the request arrives: the new member stands, and is first, also when a crash has passed. So it is with each request that Leave sends.",
	Needs: []engine.Fault{engine.HoldBack}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		for skip := 0; ; skip++ {
			call, arrives, held := a.HoldsBack(t.Ctx, engine.Leave(a.Join("x")), skip)
			if !held {
				return
			}
			err := call.Returns(t.Crash(), nil, backend.ErrUnavailable)
			if err != nil { // the member stands until the request arrives
				arrives()
			}
			b.Shows(t.Crash())
			m := a.Join("y")
			arrives()
			b.Settles(m)
			a.First(m, engine.Now)
			a.Leave(m)
		}
	},
}}
