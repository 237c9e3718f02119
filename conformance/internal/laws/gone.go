package laws

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// departs returns the check of a rule: Gone returns at once after a member has departed in this
// way.
func departs(depart func(t *engine.Trial, owner *engine.Client, m backend.Member)) func(*engine.Trial) {
	return func(t *engine.Trial) {
		b, c, owners := t.Client(), t.Client(), t.Apart()
		var members []backend.Member
		var heirs, observers []*engine.Call
		for _, a := range owners {
			m := a.Join("0")
			b.Behind(b.In(a.Election).Join("1"), m)
			members, heirs, observers = append(members, m), append(heirs, b.Gone(m)), append(observers, c.Gone(m))
		}
		unmoved(t, slices.Concat(heirs, observers)...)
		goes := func(i int) <-chan error {
			depart(t, owners[i], members[i])
			return t.Go("both calls of Gone", func() error { return cmp.Or(<-heirs[i].Result(), <-observers[i].Result()) }).Result()
		}
		for _, err := range engine.AtOnce(t, "Gone has not returned after the departure", goes) {
			if err != nil {
				t.Fatalf("Gone returned %v after the departure; want nil", err)
			}
		}
	}
}

// vanishes returns the check of a rule: Gone returns after such a crash.
func vanishes(crash func(owner *engine.Client)) func(*engine.Trial) {
	return func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		m := a.Join("0")
		b.Behind(b.Join("1"), m)
		heir, observer := b.Gone(m), c.Gone(m)
		unmoved(t, heir, observer)
		crash(a)
		heir.Returns(t.Crash())
		observer.Returns(t.Crash())
	}
}

// unmoved checks for half a TTL that none of the calls returns.
func unmoved(t *engine.Trial, waits ...*engine.Call) {
	t.Always(t.TTL/2, "Gone has returned although nobody has gone", func() bool {
		return !slices.ContainsFunc(waits, (*engine.Call).Returned)
	})
}

var goneRules = []engine.Rule{{
	ID: "L3.leave", Title: "Gone wakes when the member leaves",
	Text:  "Gone of the heir and of a client without a place does not return for half a TTL, and returns nil at once when the member has left. Five elections.",
	Check: departs(func(_ *engine.Trial, a *engine.Client, m backend.Member) { a.Leave(m) }),
}, {
	ID: "L3.close", Title: "Gone wakes when the session is closed",
	Text:  "As L3.leave, when the member's session is closed.",
	Check: departs(func(_ *engine.Trial, a *engine.Client, _ backend.Member) { a.CloseSession() }),
}, {
	ID: "L3.expire", Title: "Gone wakes when the session expires",
	Text:  "As L3.leave, when the coordinator has ended the member's session.",
	Needs: []engine.Fault{engine.Expire},
	Check: departs(func(_ *engine.Trial, a *engine.Client, _ backend.Member) { a.Inject(engine.Expire) }),
}, {
	ID: "L3.kill", Title: "Gone wakes when the client crashes",
	Text:  "Gone of the heir and of a client without a place does not return for half a TTL, and returns nil after a crash of the member's client.",
	Needs: []engine.Fault{engine.Kill}, Check: vanishes(func(a *engine.Client) { a.Inject(engine.Kill) }),
}, {
	ID: "L3.cut", Title: "Gone wakes when the client is cut off",
	Text:  "As L3.kill, when the member's client is cut off and stays so.",
	Needs: []engine.Fault{engine.Cut}, Check: vanishes(func(a *engine.Client) { a.Inject(engine.Cut) }),
}, {
	ID: "L3.removed", Title: "Gone wakes when an operator removes the member",
	Text:  "As L3.leave, when an operator removes the member; Gone of its own session returns too.",
	Needs: []engine.Fault{engine.Remove}, Check: func(t *engine.Trial) {
		a := t.Client()
		m := a.Join("x")
		own := a.Gone(m)
		unmoved(t, own)
		t.Remove(m)
		own.Returns(t.Soon())
		departs(func(t *engine.Trial, _ *engine.Client, m backend.Member) { t.Remove(m) })(t)
	},
}, {
	ID: "L3.dropped", Title: "Gone wakes when an operator deletes the election",
	Text:  "As L3.leave, when an operator has deleted the whole election.",
	Needs: []engine.Fault{engine.Drop},
	Check: departs(func(t *engine.Trial, _ *engine.Client, m backend.Member) { t.Drop(m.Line) }),
}, {
	ID: "L3.race", Title: "no departure is missed while Gone is being set up",
	Text: "Gone and the departure of its member begin at the same time, the departure later by 0 to 2 round trips, forty times. Gone returns nil soon each time.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		round := a.RoundTrip()
		for i := range 40 {
			m := a.Join("x")
			going := b.Gone(m)
			if d := time.Duration(i) * round / 20; d > 0 {
				t.Pass(d, "until Gone has got a little further")
			}
			a.Leave(m)
			going.Returns(t.Soon())
		}
	},
}, {
	ID: "L3.alone", Title: "Gone wakes for its member alone",
	Text: "In a line of five, Gone waits for the second. The first, the third and the fifth leave and a sixth joins: a client that waits for these has been woken, and Gone of the second has not been, and is not for half a TTL. When the second leaves it is, soon.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		var line []backend.Member
		for range 5 {
			line = append(line, a.Join("x"))
		}
		waiting := b.Gone(line[1])
		for _, i := range []int{0, 2, 4} {
			sibling := b.Gone(line[i])
			a.Leave(line[i])
			sibling.Returns(t.Soon())
			if waiting.Returned() {
				t.Fatalf("Gone of %s returned when %s left", engine.Show(line[1]), engine.Show(line[i]))
			}
		}
		a.Join("sixth")
		unmoved(t, waiting)
		a.Leave(line[1])
		waiting.Returns(t.Soon())
	},
}, {
	ID: "L3.past", Title: "Gone of a member that has gone returns at once",
	Text: "Gone of a member that has gone before, by its own session or by another, in a line with others and in an empty one, returns nil soon.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m := a.Join("x")
		other := a.Join("y")
		a.Leave(m)
		a.Gone(m).Returns(t.Soon())
		b.Gone(m).Returns(t.Soon())
		a.Leave(other)
		a.Gone(m).Returns(t.Soon())
		b.Gone(other).Returns(t.Soon())
	},
}, {
	ID: "L3.same-key", Title: "Gone is not deceived by a later member under the same key",
	Text:  "An operator deletes the election, and a new line is joined. Gone of each old member returns nil soon, whatever keys the new ones have.",
	Needs: []engine.Fault{engine.Drop}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		var old []backend.Member
		for range 3 {
			old = append(old, a.Join("old"))
		}
		t.Drop(t.Name)
		for _, m := range old {
			b.Gone(m).Returns(t.Soon())
		}
		for range 3 {
			b.Join("new")
		}
		for _, m := range old {
			a.Gone(m).Returns(t.Soon())
			b.Gone(m).Returns(t.Soon())
		}
	},
}, {
	ID: "L3.cancel", Title: "a cancelled Gone returns soon, and not nil",
	Text: "Gone returns the cause of its context soon after that has ended, also when it had ended before the call.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m := a.Join("x")
		cancels(t, b, engine.Gone(m))
	},
}, {
	ID: "L3.again", Title: "Gone can be called again and again",
	Text: "Two hundred calls of Gone for one member are cancelled one after the other. No goroutine of theirs is left soon after, where Requests is there they send no more than four requests each, and a last call still wakes.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m := a.Join("x")
		s := b.Live()
		b.Line()
		var before int64
		if t.Can(engine.Requests) {
			before = b.Requests()
		}
		left := t.Started(func() {
			for range 200 {
				ctx, cancel := context.WithTimeoutCause(t.Ctx, 200*time.Microsecond, engine.ErrCancelled)
				err := s.Gone(ctx, m)
				cancel()
				t.Want("cancelled Gone", err, engine.ErrCancelled)
			}
		})
		left.End("goroutines are left of 200 cancelled calls of Gone")
		if t.Can(engine.Requests) {
			if n := b.Requests() - before; n > 4*200 {
				t.Fatalf("200 calls of Gone sent %d requests", n)
			}
		}
		going := b.Gone(m)
		a.Leave(m)
		going.Returns(t.Soon())
	},
}, {
	ID: "L3.many", Title: "every Gone of one member wakes",
	Text: "Fifty calls of Gone for one member by one session, and ten by another, all return nil soon after it has left; cancelling half of them before does not disturb the others.",
	Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m := a.Join("x")
		ctx, cancel := context.WithCancelCause(t.Ctx)
		defer cancel(nil)
		var kept, dropped []*engine.Call
		for range 30 {
			kept = append(kept, b.Gone(m))
			s := b.Live()
			dropped = append(dropped, t.Go("a cancelled Gone", func() error { return s.Gone(ctx, m) }))
		}
		for range 10 {
			kept = append(kept, a.Gone(m))
		}
		cancel(engine.ErrCancelled)
		for _, d := range dropped {
			d.Returns(t.Soon(), engine.ErrCancelled)
		}
		if kept[0].Returned() {
			t.Fatalf("Gone returned when another call for the same member was cancelled")
		}
		a.Leave(m)
		for _, k := range kept {
			k.Returns(t.Soon())
		}
	},
}, {
	ID: "L3.idle", Title: "waiting costs nothing but the session",
	Text:  "A client waits in ten places from the third on, each behind another. In two TTL it sends at most one request for each wait more than a client with one place and no wait.",
	Needs: []engine.Fault{engine.Requests}, Check: func(t *engine.Trial) {
		a, waiter, idle := t.Client(), t.Client(), t.Client()
		a.Join("0")
		last := a.Join("1")
		for range 10 {
			m := waiter.Join("x")
			waiter.Gone(last)
			last = m
		}
		idle.Join("y")
		t.Settles(waiter, idle)
		w, i := waiter.Requests(), idle.Requests()
		t.Pass(2*t.TTL, "while nothing happens")
		w, i = waiter.Requests()-w, idle.Requests()-i
		if w > i+10+2 {
			t.Fatalf("ten waits sent %d requests in two TTL, no wait %d", w, i)
		}
	},
}}

// cancels checks that a blocking call returns the cause of its context when that ends, or if it
// has ended before.
func cancels(t *engine.Trial, c *engine.Client, op engine.Op) {
	s := c.Live()
	ctx, cancel := context.WithCancelCause(t.Ctx)
	begin := func(what string) *engine.Call {
		return t.Go(what+" "+op.Name, func() error { return op.Call(ctx, s) })
	}
	call := begin("a cancelled")
	t.Always(t.TTL/10, op.Name+" has returned although nothing has happened", func() bool { return !call.Returned() })
	cancel(engine.ErrCancelled)
	call.Returns(t.Soon(), engine.ErrCancelled)
	begin("with an ended context,").Returns(t.Soon(), engine.ErrCancelled)
}
