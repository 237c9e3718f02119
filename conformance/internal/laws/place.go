package laws

import (
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/header"
)

// A placeWatch is what WatchPlace says of a member, again and again, in the background. A call that
// returns what was known already is followed by the next.
type placeWatch struct {
	*engine.Call
	now backend.Place
}

func watchPlace(t *engine.Trial, c *engine.Client, m backend.Member, after backend.Place) *placeWatch {
	w := &placeWatch{now: after}
	s := c.Live()
	w.Call = t.Go(c.Name+": WatchPlace of "+engine.Show(m), func() error {
		for t.Ctx.Err() == nil {
			p := w.now
			err := s.WatchPlace(t.Ctx, m, &p)
			if news := p.First != after.First || !p.First && !engine.Same(p.Ahead, after.Ahead) || p.First && p.Header != after.Header; err != nil || news {
				w.now = p
				return err
			}
			w.now = p
		}
		return t.Ctx.Err()
	})
	return w
}

// rests checks that there is no news for a tenth of a TTL.
func (w *placeWatch) rests(t *engine.Trial) {
	t.Always(t.TTL/10, "WatchPlace has returned although the member stands as before", func() bool { return !w.Returned() })
}

var placeRules = []engine.Rule{{
	ID: "L3.place", Title: "WatchPlace wakes when the member in front has gone",
	Text: "Of five in line the third watches its place. The first and the last leave, and a sixth joins: WatchPlace does not return for a tenth of a TTL with anything new. The second leaves: soon it says that the third is first, with the token that Ahead says. When it is called with the earlier place it says so at once.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		one, two, three, four, five := a.Join("1"), a.Join("2"), b.Join("3"), a.Join("4"), a.Join("5")
		p := b.Ahead(three)
		w := watchPlace(t, b, three, p)
		a.Leave(one)
		a.Leave(five)
		a.Join("6")
		w.rests(t)
		a.Leave(two)
		for _, w := range []*placeWatch{w, watchPlace(t, b, three, p)} {
			w.Returns(t.Soon())
			if want := b.Ahead(three); w.now != want {
				t.Fatalf("WatchPlace says %s, and Ahead %s", engine.ShowPlace(w.now), engine.ShowPlace(want))
			}
		}
		a.Behind(four, three)
	},
}, {
	ID: "L3.place-late", Title: "WatchPlace tells those who come late what they have missed",
	Text: "A client stands behind another one in two elections, and looks at both places. The other one leaves the first election. The client is made to see all that was done before, looks at its place in the second again, and watches that. Then it watches its place in the first, with what it has seen before: soon it is told that it is first there.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		other := t.Name + "-other"
		front := a.Join("1")
		a.In(other).Join("1")
		late, early := b.Join("2"), b.In(other).Join("2")
		t.Settles(b) // so that nothing else happens that would wake it
		p := b.Ahead(late)
		a.Leave(front)
		b.Refresh()
		watchPlace(t, b, early, b.Ahead(early))
		t.Settles(b)
		w := watchPlace(t, b, late, p)
		w.Returns(t.Soon())
		if want := b.Ahead(late); w.now != want {
			t.Fatalf("WatchPlace says %s, and Ahead %s", engine.ShowPlace(w.now), engine.ShowPlace(want))
		}
	},
}, {
	ID: "L3.place-fence", Title: "WatchPlace counts the fence that was raised meanwhile",
	Text:  "Forty times the second in line watches its place, the leader raises the fence by ten and leaves at once: WatchPlace says First, and the token has the new fence, or the one that a move of the election has raised it to meanwhile.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		front := a.Join("x")
		for i := range 40 {
			from, to := a, b
			if i%2 == 1 {
				from, to = b, a
			}
			next := to.Join("x")
			w := watchPlace(t, to, next, to.Ahead(next))
			from.PutFence(10)
			fence := from.Header().Fence
			from.Leave(front)
			w.Returns(t.Soon())
			now := to.Header().Fence
			if want := now + next.Position; !w.now.First || w.now.Token != want || now < fence {
				t.Never("WatchPlace says %s; want the token %d, with the fence %d, which was %d", engine.ShowPlace(w.now), want, now, fence)
			}
			front = next
		}
	},
}, {
	ID: "L3.place-removed", Title: "WatchPlace wakes when the member itself has gone",
	Text:  "The first and the third of four watch their places, and an operator removes both. After their slow re-check both calls fail with ErrNotMember.",
	Needs: []engine.Fault{engine.Remove}, Check: func(t *engine.Trial) {
		a := t.Client()
		one, two, three := a.Join("1"), a.Join("2"), a.Join("3")
		a.Join("4")
		var watches []*placeWatch
		for _, m := range []backend.Member{one, three} {
			watches = append(watches, watchPlace(t, a, m, a.Ahead(m)))
		}
		for i, m := range []backend.Member{one, three} {
			watches[i].rests(t)
			t.Remove(m)
		}
		for _, w := range watches {
			w.Returns(t.Recheck()+t.Soon(), backend.ErrNotMember)
		}
		a.First(two, engine.Now)
	},
}, {
	ID: "L3.place-header", Title: "WatchPlace of the first wakes when the header changes",
	Text:  "The first in line watches its place, and so does the third. Somebody asks the leader to resign, in the header: soon WatchPlace of the first says that header, and WatchPlace of the third does not return for a tenth of a TTL.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		one := a.Join("1")
		a.Join("2")
		three := b.Join("3")
		w, behind := watchPlace(t, a, one, a.Ahead(one)), watchPlace(t, b, three, b.Ahead(three))
		w.rests(t)
		h, _ := b.PutHeader(func(h *header.Header) { h.Resign = 1 })
		w.Returns(t.Soon())
		if !w.now.First || w.now.Header != h {
			t.Fatalf("WatchPlace says %s with the header %+v; want First with %+v", engine.ShowPlace(w.now), w.now.Header, h)
		}
		behind.rests(t)
	},
}, {
	ID: "L3.place-sealed", Title: "WatchPlace tells that the election has moved",
	Text:  "The first and the second in line watch their places. The first is pinned as a seal: after its slow re-check WatchPlace of the second fails with ErrSealed, and WatchPlace of the first says First, with the new header.",
	Needs: []engine.Fault{engine.Pins}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		one, two := a.Join("1"), b.Join("2")
		seal, behind := watchPlace(t, a, one, a.Ahead(one)), watchPlace(t, b, two, b.Ahead(two))
		seal.rests(t)
		h := a.Pin(one, func(h *header.Header) { h.Sealed = "elsewhere" })
		behind.Returns(t.Recheck()+t.Soon(), backend.ErrSealed)
		seal.Returns(t.Recheck() + t.Soon())
		if !seal.now.First || seal.now.Header != h {
			t.Fatalf("WatchPlace of the seal says %s with the header %+v; want First with %+v", engine.ShowPlace(seal.now), seal.now.Header, h)
		}
	},
}, {
	ID: "L3.place-gate", Title: "WatchPlace behind a gate tells that the election has moved",
	Text:  "A gate stands at the head of a line, and the second and the third watch their places. The header is written as it was: the third does not return for a tenth of a TTL. The header then says that the election has moved, and nobody leaves: after its slow re-check WatchPlace of the second fails with ErrSealed. It leaves, and WatchPlace of the third fails soon in the same way.",
	Needs: []engine.Fault{engine.Pins, engine.Records}, Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		gate := a.Join("gate")
		a.Pin(gate, nil)
		two, three := b.Join("2"), c.Join("3")
		second, third := watchPlace(t, b, two, b.Ahead(two)), watchPlace(t, c, three, c.Ahead(three))
		a.PutHeader(func(*header.Header) {})
		third.rests(t)
		a.PutHeader(func(h *header.Header) { h.Sealed = "elsewhere" })
		second.Returns(t.Recheck()+t.Soon(), backend.ErrSealed)
		b.Leave(two)
		third.Returns(t.Soon(), backend.ErrSealed)
	},
}, {
	ID: "L3.place-late-gate", Title: "WatchPlace tells those who come late that the one in front was pinned",
	Text:  "Two shared members of a client stand behind one, and the client looks at both places. The one in front is pinned as a gate. The client is made to see all that was done before, looks at the place of the first of the two again, and watches that; then it watches the place of the other, with what it has seen before. The header then says that the election has moved: after their slow re-check both calls fail with ErrSealed.",
	Needs: []engine.Fault{engine.Pins, engine.Records, engine.Shares}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		gate := a.Join("gate")
		early, late := b.JoinShared("2"), b.JoinShared("3")
		t.Settles(b) // so that nothing else happens that would wake it
		p := b.Ahead(late)
		a.Pin(gate, nil)
		t.Settles(a)
		b.Refresh()
		watches := []*placeWatch{watchPlace(t, b, early, b.Ahead(early))}
		t.Settles(b)
		watches = append(watches, watchPlace(t, b, late, p))
		t.Settles(b)
		a.PutHeader(func(h *header.Header) { h.Sealed = "elsewhere" })
		for _, w := range watches {
			w.Returns(t.Recheck()+t.Soon(), backend.ErrSealed)
		}
	},
}, {
	ID: "L3.place-ends", Title: "a cancelled WatchPlace returns soon",
	Text: "WatchPlace, of the first and of the second, returns the cause of its context soon after that has ended, also when it had ended before the call.",
	Check: func(t *engine.Trial) {
		a := t.Client()
		for _, m := range []backend.Member{a.Join("1"), a.Join("2")} {
			cancels(t, a, engine.WatchPlace(m, a.Ahead(m)))
		}
	},
}}
