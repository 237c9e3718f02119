package conformance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

// departs is a rule that Gone returns at once after a departure of the given kind.
func departs(depart func(owner *client, m backend.Member)) func(*trial) {
	return func(t *trial) {
		b, c := t.client(), t.client()
		owners := make([]*client, moments)
		members := make([]backend.Member, moments)
		heirs := make([]<-chan error, moments)
		observers := make([]<-chan error, moments)
		for i, line := range t.lines() {
			owners[i] = t.client().in(line)
			m := owners[i].join("0")
			b.behind(b.joinLine(line, "1"), m)
			members[i], heirs[i], observers[i] = m, b.going(m), c.going(m)
		}
		t.unmoved(slices.Concat(heirs, observers)...)
		goes := func(i int) <-chan error {
			depart(owners[i], members[i])
			return t.async(func() error { return cmp.Or(<-heirs[i], <-observers[i]) })
		}
		for _, err := range atOnce(t, "Gone has not returned after the departure", goes) {
			if err != nil {
				t.fatalf("Gone returned %v after the departure; want nil", err)
			}
		}
	}
}

// vanishes is a rule that Gone returns after a crash of the given kind.
func vanishes(crash func(owner *client)) func(*trial) {
	return func(t *trial) {
		a, b, c := t.client(), t.client(), t.client()
		m := a.join("0")
		b.behind(b.join("1"), m)
		heir, observer := b.going(m), c.going(m)
		t.unmoved(heir, observer)
		crash(a)
		for _, w := range []<-chan error{heir, observer} {
			if err := await(t, w, t.h.crash(), "Gone has not returned after the crash"); err != nil {
				t.fatalf("Gone returned %v after the crash; want nil", err)
			}
		}
	}
}

func soon(t *trial) time.Duration       { return t.h.soon() }
func afterCrash(t *trial) time.Duration { return t.h.crash() }

// unmoved checks for half a TTL that none of the waits returns.
func (t *trial) unmoved(waits ...<-chan error) {
	t.steady(t.h.TTL/2, "Gone has returned although nobody has gone", func() bool {
		for _, w := range waits {
			if returned(w) {
				return false
			}
		}
		return true
	})
}

var goneRules = []Rule{{
	ID:    "L3.leave",
	Title: "Gone wakes when the member leaves",
	Text:  "Gone of the heir and of a client without a place does not return for half a TTL, and returns nil at once when the member has left. Five elections.",
	check: departs(func(a *client, m backend.Member) { a.leave(m) }),
}, {
	ID:    "L3.close",
	Title: "Gone wakes when the session is closed",
	Text:  "As L3.leave, when the member's session is closed.",
	check: departs(func(a *client, _ backend.Member) {
		a.do("Close", func(ctx context.Context, s backend.Session) error { return s.Close(ctx) })
	}),
}, {
	ID:    "L3.expire",
	Title: "Gone wakes when the session expires",
	Text:  "As L3.leave, when the coordinator has ended the member's session.",
	Needs: []Fault{Expire},
	check: departs(func(a *client, _ backend.Member) { a.expire() }),
}, {
	ID:    "L3.kill",
	Title: "Gone wakes when the client crashes",
	Text:  "Gone of the heir and of a client without a place does not return for half a TTL, and returns nil after a crash of the member's client.",
	Needs: []Fault{Kill},
	check: vanishes((*client).kill),
}, {
	ID:    "L3.cut",
	Title: "Gone wakes when the client is cut off",
	Text:  "As L3.kill, when the member's client is cut off and stays so.",
	Needs: []Fault{Cut},
	check: vanishes(func(a *client) { a.cut() }),
}, {
	ID:    "L3.removed",
	Title: "Gone wakes when an operator removes the member",
	Text:  "As L3.leave, when an operator removes the member; Gone of its own session returns too.",
	Needs: []Fault{Remove},
	check: func(t *trial) {
		a := t.client()
		m := a.join("x")
		own := a.going(m)
		t.unmoved(own)
		t.remove(m)
		if err := await(t, own, t.h.soon(), "Gone of the own member has not returned after its removal"); err != nil {
			t.fatalf("Gone of the own member: %v", err)
		}
		departs(func(_ *client, m backend.Member) { t.remove(m) })(t)
	},
}, {
	ID:    "L3.dropped",
	Title: "Gone wakes when an operator deletes the election",
	Text:  "As L3.leave, when an operator has deleted the whole election.",
	Needs: []Fault{Drop},
	check: departs(func(a *client, m backend.Member) { a.t.dropLine(m.Line) }),
}, {
	ID:    "L3.race",
	Title: "no departure is missed while Gone is being set up",
	Text:  "Gone and the departure of its member begin at the same time, the departure later by 0 to 2 round trips, forty times. Gone returns nil soon each time.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		round := t.roundTrip(a)
		for i := range 40 {
			m := a.join("x")
			going := b.going(m)
			if d := time.Duration(i) * round / 20; d > 0 {
				t.pass(d, "until Gone has got a little further")
			}
			a.leave(m)
			if err := await(t, going, t.h.soon(), "Gone has missed a departure"); err != nil {
				t.fatalf("Gone: %v", err)
			}
		}
	},
}, {
	ID:    "L3.alone",
	Title: "Gone wakes for its member alone",
	Text:  "In a line of five, Gone waits for the second. The first, the third and the fifth leave and a sixth joins: a client that waits for these has been woken, and Gone of the second has not been, and is not for half a TTL. When the second leaves it is, soon.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		var line []backend.Member
		for range 5 {
			line = append(line, a.join("x"))
		}
		waiting := b.going(line[1])
		for _, i := range []int{0, 2, 4} {
			sibling := b.going(line[i])
			a.leave(line[i])
			if err := await(t, sibling, t.h.soon(), "Gone has not returned after its member left"); err != nil {
				t.fatalf("Gone: %v", err)
			}
			if returned(waiting) {
				t.fatalf("Gone of %s returned when %s left", show(line[1]), show(line[i]))
			}
		}
		a.join("sixth")
		t.unmoved(waiting)
		a.leave(line[1])
		if err := await(t, waiting, t.h.soon(), "Gone has not returned after its member left"); err != nil {
			t.fatalf("Gone: %v", err)
		}
	},
}, {
	ID:    "L3.past",
	Title: "Gone of a member that has gone returns at once",
	Text:  "Gone of a member that has gone before, by its own session or by another, in a line with others and in an empty one, returns nil soon.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m := a.join("x")
		other := a.join("y")
		a.leave(m)
		a.gone(m, t.h.soon())
		b.gone(m, t.h.soon())
		a.leave(other)
		a.gone(m, t.h.soon())
		b.gone(other, t.h.soon())
	},
}, {
	ID:    "L3.same-key",
	Title: "Gone is not deceived by a later member under the same key",
	Text:  "An operator deletes the election, and a new line is joined. Gone of each old member returns nil soon, whatever keys the new ones have.",
	Needs: []Fault{Drop},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		var old []backend.Member
		for range 3 {
			old = append(old, a.join("old"))
		}
		t.drop()
		for _, m := range old {
			b.gone(m, t.h.soon())
		}
		for range 3 {
			b.join("new")
		}
		for _, m := range old {
			a.gone(m, t.h.soon())
			b.gone(m, t.h.soon())
		}
	},
}, {
	ID:    "L3.cancel",
	Title: "a cancelled Gone returns soon, and not nil",
	Text:  "Gone returns the cause of its context soon after that has ended, also when it had ended before the call.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m := a.join("x")
		t.cancels("Gone", b.live(), func(ctx context.Context, s backend.Session) error { return s.Gone(ctx, m) })
	},
}, {
	ID:    "L3.again",
	Title: "Gone can be called again and again",
	Text:  "Two hundred calls of Gone for one member are cancelled one after the other. No goroutine of theirs is left soon after, where Requests is there they send no more than four requests each, and a last call still wakes.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m := a.join("x")
		s := b.live()
		b.lineNow()
		var before int64
		if t.h.can(Requests) {
			before = b.requests()
		}
		left := t.labelled(func() {
			for range 200 {
				ctx, cancel := context.WithTimeoutCause(t.ctx, 200*time.Microsecond, errCancelled)
				err := s.Gone(ctx, m)
				cancel()
				if !errors.Is(err, errCancelled) {
					t.fatalf("cancelled Gone returned %v; want the cause of its context", err)
				}
			}
		})
		t.nobodyLeft(left, "goroutines are left of 200 cancelled calls of Gone")
		if t.h.can(Requests) {
			if n := b.requests() - before; n > 4*200 {
				t.fatalf("200 calls of Gone sent %d requests", n)
			}
		}
		going := b.going(m)
		a.leave(m)
		if err := await(t, going, t.h.soon(), "Gone has not returned after 200 cancelled calls"); err != nil {
			t.fatalf("Gone: %v", err)
		}
	},
}, {
	ID:    "L3.many",
	Title: "every Gone of one member wakes",
	Text:  "Fifty calls of Gone for one member by one session, and ten by another, all return nil soon after it has left; cancelling half of them before does not disturb the others.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m := a.join("x")
		ctx, cancel := context.WithCancelCause(t.ctx)
		defer cancel(nil)
		var kept, dropped []<-chan error
		for range 30 {
			kept = append(kept, b.going(m))
			s := b.live()
			dropped = append(dropped, t.async(func() error { return s.Gone(ctx, m) }))
		}
		for range 10 {
			kept = append(kept, a.going(m))
		}
		cancel(errCancelled)
		for _, d := range dropped {
			if err := await(t, d, t.h.soon(), "a cancelled Gone has not returned"); !errors.Is(err, errCancelled) {
				t.fatalf("a cancelled Gone returned %v", err)
			}
		}
		if returned(kept[0]) {
			t.fatalf("Gone returned when another call for the same member was cancelled")
		}
		a.leave(m)
		for _, k := range kept {
			if err := await(t, k, t.h.soon(), "one of many calls of Gone has not returned"); err != nil {
				t.fatalf("Gone: %v", err)
			}
		}
	},
}, {
	ID:    "L3.idle",
	Title: "waiting costs nothing but the session",
	Text:  "A client waits in ten places from the third on, each behind another. In two TTL it sends at most one request for each wait more than a client with one place and no wait.",
	Needs: []Fault{Requests},
	check: func(t *trial) {
		a, waiter, idle := t.client(), t.client(), t.client()
		a.join("0")
		last := a.join("1")
		for range 10 {
			m := waiter.join("x")
			waiter.going(last)
			last = m
		}
		idle.join("y")
		t.pass(t.h.TTL/4, "until all waits have been set up")
		w, i := waiter.requests(), idle.requests()
		t.pass(2*t.h.TTL, "while nothing happens")
		w, i = waiter.requests()-w, idle.requests()-i
		if w > i+10+2 {
			t.fatalf("ten waits sent %d requests in two TTL, no wait %d", w, i)
		}
	},
}}

// cancels checks that a call that blocks returns the cause of its context.
func (t *trial) cancels(what string, s backend.Session, call func(context.Context, backend.Session) error) {
	ctx, cancel := context.WithCancelCause(t.ctx)
	result := t.async(func() error { return call(ctx, s) })
	t.steady(t.h.TTL/10, what+" has returned although nothing has happened", func() bool { return !returned(result) })
	cancel(errCancelled)
	if err := await(t, result, t.h.soon(), "a cancelled "+what+" has not returned"); !errors.Is(err, errCancelled) {
		t.fatalf("a cancelled %s returned %v; want the cause of its context", what, err)
	}
	result = t.async(func() error { return call(ctx, s) })
	if err := await(t, result, t.h.soon(), what+" with an ended context has not returned"); !errors.Is(err, errCancelled) {
		t.fatalf("%s with an ended context returned %v; want the cause of its context", what, err)
	}
}

// nobodyLeft waits until no goroutine is left. It looks less and less often, as each
// look stops all goroutines and names every frame of every stack.
func (t *trial) nobodyLeft(left func() (int, string), what string) {
	deadline := time.NewTimer(t.h.soon())
	defer deadline.Stop()
	late := false
	for wait := t.tick(); ; wait *= 2 {
		n, stacks := left()
		switch {
		case n == 0:
			return
		case late:
			t.fatalf("%s: %d\n%s", what, n, stacks)
		}
		select {
		case <-time.After(wait):
		case <-t.ctx.Done():
			t.fatalf("%s: %v", what, context.Cause(t.ctx))
		case <-deadline.C:
			late = true
		}
	}
}
