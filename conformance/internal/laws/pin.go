package laws

import (
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/header"
)

// outlives returns the check of a rule: a pinned member outlives the end of its session.
func outlives(end func(*engine.Client)) func(*engine.Trial) {
	return func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m, unpinned, next := a.Join("pinned"), a.Join("not pinned"), b.Join("behind")
		a.Pin(m, nil)
		waiting := b.Gone(unpinned)
		s := a.Live()
		end(a)
		waiting.Returns(t.Crash())
		engine.Await(t, s.Done(), t.Crash(), "Done has not closed")
		b.Behind(next, m)
		l := b.Members()
		if !engine.SameLine(l, []backend.Member{m, next}) || !l[0].Pinned || l[1].Pinned {
			t.Fatalf("the line is %s; want %s pinned and %s behind it", engine.ShowLine(l), engine.Show(m), engine.Show(next))
		}
	}
}

var pinRules = []engine.Rule{{
	ID: "Pin.closed", Title: "a pinned member outlives its session",
	Text:  "A pinned member keeps its place when its session is closed, and is shown as pinned; who stands behind it goes on waiting. A member of the same session that is not pinned leaves.",
	Needs: []engine.Fault{engine.Pins}, Check: outlives((*engine.Client).CloseSession),
}, {
	ID: "Pin.expired", Title: "a pinned member outlives a session that expires",
	Text:  "As Pin.closed, when the coordinator ends the session.",
	Needs: []engine.Fault{engine.Expire, engine.Pins}, Check: outlives((*engine.Client).Expires),
}, {
	ID: "Pin.left", Title: "anybody can take out a pinned member",
	Text:  "When its session is over, another client's Leave takes a pinned member out: who waits behind it is woken soon, and is first.",
	Needs: []engine.Fault{engine.Pins}, Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		m, next := a.Join("x"), b.Join("y")
		a.Pin(m, nil)
		a.CloseSession()
		going := b.Gone(m)
		c.Shows(t.Soon(), m, next)
		c.Leave(c.Members()[0])
		going.Returns(t.Soon())
		b.First(next, t.Soon()) // Gone may also have returned because of the pin
		c.Shows(t.Soon(), next)
	},
}, {
	ID: "Pin.header", Title: "Pin writes the header",
	Text:  "Pin at the version that the election's record has, or Absent, pins the member and writes the header under a new version. Pinning again, at the version that the record then has, is not an error.",
	Needs: []engine.Fault{engine.Pins}, Check: func(t *engine.Trial) {
		a := t.Client()
		for i, m := range []backend.Member{a.Join("x"), a.Join("y")} {
			before := a.Line()
			h := a.Pin(m, func(h *header.Header) { h.Fence, h.Acknowledged = h.Fence+10, 3 })
			l := a.Line()
			if l.Header != h || l.Version == before.Version || !l.Members[i].Pinned {
				t.Fatalf("after Pin, the line is %s with header %+v at version %d, before it %d", engine.ShowLine(l.Members), l.Header, l.Version, before.Version)
			}
			a.Pin(m, nil)
		}
	},
}, {
	ID: "Pin.version", Title: "Pin at another version changes nothing",
	Text:  "Pin at a version that the record does not have, at Absent where there is one, and at a version where there is none, fails with ErrVersion; the header is what it was, and the member is not pinned: it leaves with its session.",
	Needs: []engine.Fault{engine.Pins, engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m := a.Join("x")
		first := a.Line()
		lost := first.Header
		lost.Fence += 99
		if first.Version == backend.Absent {
			a.Fails(engine.Pin(m, lost, 1), backend.ErrVersion)
		}
		old := b.PutFence(1)
		v := b.PutFence(1)
		for _, at := range []backend.Version{old, backend.Absent, v + 1} {
			a.Fails(engine.Pin(m, lost, at), backend.ErrVersion)
		}
		if l := a.Line(); l.Version != v || l.Header.Fence != first.Header.Fence+2 || l.Members[0].Pinned {
			t.Fatalf("after a refused Pin, the line is %s with header %+v", engine.ShowLine(l.Members), l.Header)
		}
		a.CloseSession()
		b.Shows(t.Soon())
	},
}, {
	ID: "Pin.gone", Title: "who has gone cannot be pinned",
	Text:  "Pin of a member that has left fails with ErrNotMember, and writes no header.",
	Needs: []engine.Fault{engine.Pins}, Check: func(t *engine.Trial) {
		a := t.Client()
		m := a.Join("x")
		a.Leave(m)
		before := a.Line()
		lost := before.Header
		lost.Fence += 99
		a.Fails(engine.Pin(m, lost, before.Version), backend.ErrNotMember)
		if l := a.Line(); len(l.Members) != 0 || l.Version != before.Version {
			t.Fatalf("after a refused Pin, the line is %s, its record at version %d", engine.ShowLine(l.Members), l.Version)
		}
	},
}, {
	ID: "Pin.foreign", Title: "another's member cannot be pinned",
	Text:  "Pin of a member that another session joined fails, and changes neither the header nor the member, which leaves with its session.",
	Needs: []engine.Fault{engine.Pins}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m := a.Join("x")
		mine := b.Join("y")
		before := b.Line()
		lost := before.Header
		lost.Fence += 99
		b.Fails(engine.Pin(m, lost, before.Version))
		if l := b.Line(); l.Version != before.Version || l.Members[0].Pinned {
			t.Fatalf("after a refused Pin, the line is %s, its record at version %d", engine.ShowLine(l.Members), l.Version)
		}
		a.CloseSession()
		b.Shows(t.Soon(), mine)
	},
}, {
	ID: "Pin.gate", Title: "a gate holds up everybody",
	Text:  "A member that was pinned at the head of an empty line, and whose session is closed, is a gate: candidates behind it, before and after their slow re-check, do not lead. When anybody takes it out, they lead soon, in their order, with growing tokens.",
	Needs: []engine.Fault{engine.Pins}, Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		gate := c.Join("gate")
		c.Pin(gate, nil)
		c.CloseSession()
		first := a.Stand(t.Ctx)
		second := b.Stand(t.Ctx)
		t.Always(t.TTL*3/2, "a candidate leads behind a gate", func() bool {
			return first.Undecided() && second.Undecided()
		})
		c.Leave(gate)
		one := first.Wins(t.Soon())
		if second.Leading() {
			t.Fatalf("the second in line won with the first")
		}
		one.Resign(t.Ctx)
		if two := second.Wins(t.Soon()); two.Token() <= one.Token() || one.Token() <= gate.Position {
			t.Fatalf("the tokens behind gate %s are %d and %d", engine.Show(gate), one.Token(), two.Token())
		}
	},
}, {
	ID: "Pin.lost-answer", Title: "a lost answer of Pin is resolved",
	Text:  "Where the answer of Pin is lost after it took effect, Pin returns nil, the member is pinned and the header written; and it fails with ErrVersion no more than it would have.",
	Needs: []engine.Fault{engine.LoseAnswer, engine.Pins}, Check: func(t *engine.Trial) {
		a := t.Client()
		m := a.Join("x")
		before := a.Line()
		h := before.Header
		h.Fence += 5
		a.Loses(engine.Pin(m, h, before.Version)) // the driver itself finds out what happened
		if l := a.Line(); !engine.SameLine(l.Members, []backend.Member{m}) || !l.Members[0].Pinned || l.Header != h {
			t.Fatalf("after Pin with a lost answer, the line is %s with header %+v", engine.ShowLine(l.Members), l.Header)
		}
	},
}, {
	ID: "Pin.lost-written", Title: "a lost answer of Pin is resolved although somebody has written since",
	Text:  "Where the answer of Pin is lost after it took effect, and another client then writes the header, Pin returns nil, and what the other one has written stays.",
	Needs: []engine.Fault{engine.LoseAnswer, engine.Pins, engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m := a.Join("x")
		before := a.Line()
		h := before.Header
		h.Fence += 5
		later := h
		later.Fence += 5
		s := b.Live()
		written := t.Go("who writes once the member is pinned", func() error {
			for l := before; ; {
				var err error
				if l, err = s.Line(t.Ctx, b.Election); err != nil {
					return err
				}
				if l.Header == h {
					_, err = s.Put(t.Ctx, b.Election, later.Encode(), &backend.If{Version: l.Version})
					return err
				}
			}
		})
		a.Loses(engine.Pin(m, h, before.Version)) // the driver itself finds out what happened
		written.Returns(t.Soon())
		if l := b.Line(); !engine.SameLine(l.Members, []backend.Member{m}) || !l.Members[0].Pinned || l.Header != later {
			t.Fatalf("after Pin with a lost answer, the line is %s with header %+v", engine.ShowLine(l.Members), l.Header)
		}
	},
}, {
	ID: "Pin.sealed", Title: "a sealed election says where it went",
	Text:  "When the leader has pinned its member with a header that is sealed, Ahead of each who waits behind fails with a SealedError with that address, and Ahead of the leader says First with the same token. New members fare as those who wait, and all do when the leader's member has been taken out, where that is not denied.",
	Needs: []engine.Fault{engine.Pins}, Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		m, next, last := a.Join("x"), b.Join("y"), c.Join("z")
		token := a.First(m, engine.Now)
		a.Pin(m, func(h *header.Header) { h.Sealed = "memory:elsewhere" })
		behind := []struct {
			*engine.Client
			m backend.Member
		}{{b, next}, {c, last}, {b, b.Join("new")}}
		for _, w := range behind {
			var err error
			t.Eventually(t.Soon(), "Ahead behind a seal fails", func() bool {
				err = w.Try(engine.Ahead(w.m))
				return err != nil
			})
			if to := engine.SealedTo(err); to != "memory:elsewhere" {
				t.Fatalf("Ahead behind a seal failed with %v; want a SealedError with the address", err)
			}
		}
		if got := a.First(m, engine.Now); got != token {
			t.Fatalf("the token of the leader was %d, and is %d after it sealed", token, got)
		}
		if engine.Is(c.Try(engine.Leave(c.Members()[0])), backend.ErrDenied) {
			return
		}
		for _, w := range behind {
			w.Shows(t.Soon(), next, last, behind[2].m)
			if err := w.Fails(engine.Ahead(w.m)); engine.SealedTo(err) != "memory:elsewhere" {
				t.Fatalf("when who sealed was taken out, Ahead failed with %v; want a SealedError with the address", err)
			}
		}
	},
}}
