package conformance

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
)

// pin pins m, which must be possible.
func (c *client) pin(m backend.Member, h backend.Header, at backend.Version) {
	c.do("Pin", func(ctx context.Context, s backend.Session) error { return s.Pin(ctx, m, h, at) })
}

// pinAsItIs pins m and leaves the election's header as it is.
func (c *client) pinAsItIs(m backend.Member) {
	l := c.lineNow()
	c.pin(m, l.Header, l.Version)
}

// pinFails returns the error of Pin, which must fail.
func (c *client) pinFails(m backend.Member, h backend.Header, at backend.Version) error {
	ctx, cancel := c.t.within(c.t.h.soon())
	defer cancel()
	err := c.live().Pin(ctx, m, h, at)
	if err == nil {
		c.t.fatalf("%s: Pin of %s should have failed", c.name, show(m))
	}
	return err
}

func (c *client) closeSession() {
	c.do("Close", func(ctx context.Context, s backend.Session) error { return s.Close(ctx) })
}

// outlives is a rule that a pinned member outlives an end of its session.
func outlives(end func(*client)) func(*trial) {
	return func(t *trial) {
		a, b := t.client(), t.client()
		m, unpinned, next := a.join("pinned"), a.join("not pinned"), b.join("behind")
		a.pinAsItIs(m)
		waiting := b.going(unpinned)
		s := a.live()
		end(a)
		if err := await(t, waiting, t.h.crash(), "the member that is not pinned has not gone"); err != nil {
			t.fatalf("Gone: %v", err)
		}
		await(t, s.Done(), t.h.crash(), "Done has not closed")
		b.behind(next, m)
		l := b.members()
		if !sameLine(l, []backend.Member{m, next}) || !l[0].Pinned || l[1].Pinned {
			t.fatalf("the line is %s; want %s pinned and %s behind it", showLine(l), show(m), show(next))
		}
	}
}

var pinRules = []Rule{{
	ID:    "Pin.closed",
	Title: "a pinned member outlives its session",
	Text:  "A pinned member keeps its place when its session is closed, and is shown as pinned; who stands behind it goes on waiting. A member of the same session that is not pinned leaves.",
	Needs: []Fault{Pins},
	check: outlives((*client).closeSession),
}, {
	ID:    "Pin.expired",
	Title: "a pinned member outlives a session that expires",
	Text:  "As Pin.closed, when the coordinator ends the session.",
	Needs: []Fault{Expire, Pins},
	check: outlives((*client).expire),
}, {
	ID:    "Pin.left",
	Title: "anybody can take out a pinned member",
	Text:  "When its session is over, another client's Leave takes a pinned member out: who waits behind it is woken soon, and is first.",
	Needs: []Fault{Pins},
	check: func(t *trial) {
		a, b, c := t.client(), t.client(), t.client()
		m, next := a.join("x"), b.join("y")
		a.pinAsItIs(m)
		a.closeSession()
		going := b.going(m)
		c.shows(m, next)
		c.leave(c.members()[0])
		if err := await(t, going, t.h.soon(), "Gone has not returned after a pinned member was taken out"); err != nil {
			t.fatalf("Gone: %v", err)
		}
		// Gone may have returned because of the pin; the line decides.
		b.leads(next)
		c.shows(next)
	},
}, {
	ID:    "Pin.header",
	Title: "Pin writes the header",
	Text:  "Pin at the version that the election's record has, or Absent, pins the member and writes the header under a new version. Pinning again, at the version that the record then has, is not an error.",
	Needs: []Fault{Pins},
	check: func(t *trial) {
		a := t.client()
		for i, m := range []backend.Member{a.join("x"), a.join("y")} {
			before := a.lineNow()
			h := before.Header
			h.Fence, h.Acknowledged = h.Fence+10, 3
			a.pin(m, h, before.Version)
			l := a.lineNow()
			if l.Header != h || l.Version == before.Version || !l.Members[i].Pinned {
				t.fatalf("after Pin, the line is %s with header %+v at version %d, before it %d", showLine(l.Members), l.Header, l.Version, before.Version)
			}
			a.pin(m, h, l.Version)
		}
	},
}, {
	ID:    "Pin.version",
	Title: "Pin at another version changes nothing",
	Text:  "Pin at a version that the record does not have, at Absent where there is one, and at a version where there is none, fails with ErrVersion; the header is what it was, and the member is not pinned: it leaves with its session.",
	Needs: []Fault{Pins, Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m := a.join("x")
		first := a.lineNow()
		lost := first.Header
		lost.Fence += 99
		if first.Version == backend.Absent {
			if err := a.pinFails(m, lost, 1); !is(err, backend.ErrVersion) {
				t.fatalf("Pin at a version where there is no record failed with %v; want ErrVersion", err)
			}
		}
		old := b.raise(1)
		v := b.raise(1)
		for _, at := range []backend.Version{old, backend.Absent, v + 1} {
			if err := a.pinFails(m, lost, at); !is(err, backend.ErrVersion) {
				t.fatalf("Pin at version %d, where the record has %d, failed with %v; want ErrVersion", at, v, err)
			}
		}
		if l := a.lineNow(); l.Version != v || l.Header.Fence != first.Header.Fence+2 || l.Members[0].Pinned {
			t.fatalf("after a refused Pin, the line is %s with header %+v", showLine(l.Members), l.Header)
		}
		a.closeSession()
		b.shows()
	},
}, {
	ID:    "Pin.gone",
	Title: "who has gone cannot be pinned",
	Text:  "Pin of a member that has left fails with ErrNotMember, and writes no header.",
	Needs: []Fault{Pins},
	check: func(t *trial) {
		a := t.client()
		m := a.join("x")
		a.leave(m)
		before := a.lineNow()
		lost := before.Header
		lost.Fence += 99
		if err := a.pinFails(m, lost, before.Version); !is(err, backend.ErrNotMember) {
			t.fatalf("Pin of a member that left failed with %v; want ErrNotMember", err)
		}
		if l := a.lineNow(); len(l.Members) != 0 || l.Version != before.Version {
			t.fatalf("after a refused Pin, the line is %s, its record at version %d", showLine(l.Members), l.Version)
		}
	},
}, {
	ID:    "Pin.foreign",
	Title: "another's member cannot be pinned",
	Text:  "Pin of a member that another session joined fails, and changes neither the header nor the member, which leaves with its session.",
	Needs: []Fault{Pins},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m := a.join("x")
		mine := b.join("y")
		before := b.lineNow()
		lost := before.Header
		lost.Fence += 99
		b.pinFails(m, lost, before.Version)
		if l := b.lineNow(); l.Version != before.Version || l.Members[0].Pinned {
			t.fatalf("after a refused Pin, the line is %s, its record at version %d", showLine(l.Members), l.Version)
		}
		a.closeSession()
		b.shows(mine)
	},
}, {
	ID:    "Pin.gate",
	Title: "a gate holds up everybody",
	Text:  "A member that was pinned at the head of an empty line, and whose session is closed, is a gate: candidates behind it, before and after their slow re-check, do not lead. When anybody takes it out, they lead soon, in their order, with growing tokens.",
	Needs: []Fault{Pins},
	check: func(t *trial) {
		a, b, c := t.client(), t.client(), t.client()
		gate := c.join("gate")
		c.pinAsItIs(gate)
		c.closeSession()
		first := a.campaigns(t.ctx)
		second := b.campaigns(t.ctx)
		t.steady(t.h.TTL*3/2, "a candidate leads behind a gate", func() bool {
			return !returned(first.won) && !returned(second.won) && !returned(first.failed) && !returned(second.failed)
		})
		c.leave(gate)
		one := first.wins(t.h.soon())
		if returned(second.won) {
			t.fatalf("the second in line won with the first")
		}
		one.Resign(t.ctx)
		if two := second.wins(t.h.soon()); two.Token() <= one.Token() || one.Token() <= gate.Position {
			t.fatalf("the tokens behind gate %s are %d and %d", show(gate), one.Token(), two.Token())
		}
	},
}, {
	ID:    "Pin.lost-answer",
	Title: "a lost answer of Pin is resolved",
	Text:  "Where the answer of Pin is lost after it took effect, Pin returns nil, the member is pinned and the header written; and it fails with ErrVersion no more than it would have.",
	Needs: []Fault{LoseAnswer, Pins},
	check: func(t *trial) {
		a := t.client()
		m := a.join("x")
		before := a.lineNow()
		a.loseAnswer()
		ctx, cancel := t.within(t.h.crash())
		defer cancel()
		h := before.Header
		h.Fence += 5
		if err := a.live().Pin(ctx, m, h, before.Version); err != nil {
			t.fatalf("Pin with a lost answer: %v; a driver resolves that", err)
		}
		if l := a.lineNow(); !sameLine(l.Members, []backend.Member{m}) || !l.Members[0].Pinned || l.Header != h {
			t.fatalf("after Pin with a lost answer, the line is %s with header %+v", showLine(l.Members), l.Header)
		}
	},
}, {
	ID:    "Pin.sealed",
	Title: "a sealed election says where it went",
	Text:  "When the leader has pinned its member with a header that is sealed, Ahead of each who waits behind fails with a SealedError with that address, and Ahead of the leader says First with the same token. New members fare as those who wait, and all do when the leader's member has been taken out, where that is not denied.",
	Needs: []Fault{Pins},
	check: func(t *trial) {
		a, b, c := t.client(), t.client(), t.client()
		m, next, last := a.join("x"), b.join("y"), c.join("z")
		token := a.leads(m)
		l := a.lineNow()
		l.Header.Sealed = "memory:elsewhere"
		a.pin(m, l.Header, l.Version)
		behind := []struct {
			*client
			m backend.Member
		}{{b, next}, {c, last}, {b, b.join("new")}}
		for _, w := range behind {
			var err error
			t.poll(t.h.soon(), "Ahead behind a seal fails", func() bool {
				ctx, cancel := t.within(t.h.soon())
				defer cancel()
				_, err = w.live().Ahead(ctx, w.m)
				return err != nil
			})
			if to := sealedTo(err); to != "memory:elsewhere" {
				t.fatalf("Ahead behind a seal failed with %v; want a SealedError with the address", err)
			}
		}
		if got := a.leads(m); got != token {
			t.fatalf("the token of the leader was %d, and is %d after it sealed", token, got)
		}
		ctx, cancel := t.within(t.h.soon())
		defer cancel()
		switch err := c.live().Leave(ctx, c.members()[0]); {
		case is(err, backend.ErrDenied):
			return
		case err != nil:
			t.fatalf("Leave of the member that sealed: %v", err)
		}
		for _, w := range behind {
			w.shows(next, last, behind[2].m)
			if err := w.aheadFails(w.m); sealedTo(err) != "memory:elsewhere" {
				t.fatalf("when who sealed was taken out, Ahead failed with %v; want a SealedError with the address", err)
			}
		}
	},
}}

func sealedTo(err error) string {
	var sealed *backend.SealedError
	if errors.As(err, &sealed) {
		return sealed.To
	}
	return ""
}
