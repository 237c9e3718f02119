package guarantees

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// refused checks that guarded writes of a term that is over are refused, and change nothing.
func refused(t *engine.Trial, term election.Term, by *engine.Client, record, value string, v backend.Version) {
	for _, at := range []backend.Version{0, v} {
		ctx, cancel := t.Within(t.Crash())
		_, err := term.Put(ctx, record, []byte("late"), at)
		cancel()
		t.Want("Put of a term that is over", err, backend.ErrNotMember, backend.ErrSessionEnded)
	}
	by.Refresh()
	by.Has(record, value, v)
}

// guarded returns the check of a rule: a leader's guarded write is done before the end of its
// term, and refused after it.
func guarded(end func(t *engine.Trial, c *engine.Client, term election.Term)) func(*engine.Trial) {
	return func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		record := t.Name + "-work"
		term := a.Leads()
		v, err := term.Put(t.Ctx, record, []byte("done"), backend.Absent)
		t.Want("Put of a standing leader", err)
		end(t, a, term)
		refused(t, term, b, record, "done", v)
	}
}

// A guardedWrite is a call that needs the member m to stand. make makes what it writes to, and returns it.
type guardedWrite struct {
	name  string
	needs engine.Fault
	make  func(c *engine.Client, m backend.Member) engine.Op
}

// theRecord and theItems return the names of what guarded writes for an election write to.
func theRecord(election string) string { return election + "-record" }
func theItems(election string) string  { return election + "-items" }

var guardedWrites = []guardedWrite{
	{"Put of a new record", engine.Records, func(c *engine.Client, m backend.Member) engine.Op {
		return engine.Put(theRecord(m.Line), "late", &backend.If{Member: m})
	}},
	{"Put of a record", engine.Records, func(c *engine.Client, m backend.Member) engine.Op {
		c.Put(theRecord(m.Line), "first", nil)
		return engine.Put(theRecord(m.Line), "late", &backend.If{Member: m})
	}},
	{"Put at a version", engine.Records, func(c *engine.Client, m backend.Member) engine.Op {
		v := c.Put(theRecord(m.Line), "first", &backend.If{Member: m})
		return engine.Put(theRecord(m.Line), "late", &backend.If{Member: m, Version: v})
	}},
	{"Delete", engine.Records, func(c *engine.Client, m backend.Member) engine.Op {
		c.Put(theRecord(m.Line), "first", nil)
		return engine.Delete(theRecord(m.Line), &backend.If{Member: m})
	}},
	{"Pin", engine.Pins, func(c *engine.Client, m backend.Member) engine.Op {
		l := c.Line()
		h := c.Noted(l.Header)
		h.Resign++
		return engine.Pin(m, h.Stored(), l.Version)
	}},
	{"Remove", engine.Items, func(c *engine.Client, m backend.Member) engine.Op {
		return engine.RemoveItem(c.In(theItems(m.Line)).Append("item"), m)
	}},
}

// lateWrite returns the check of a rule: each request of each guarded write of a leader, in turn,
// is held back until end has had its member go and the next in line is first. Then it arrives, and
// changes nothing.
func lateWrite(end func(t *engine.Trial, a *engine.Client, m backend.Member)) func(*engine.Trial) {
	return func(t *engine.Trial) {
		b := t.Client()
		var calls []*engine.Call
		for i, w := range guardedWrites {
			if !t.Can(w.needs) {
				continue
			}
			calls = append(calls, t.Go("a late "+w.name, func() error {
				for skip := 0; w.comesLate(t, fmt.Sprintf("%s-%d-%d", t.Name, i, skip), b, skip, end); skip++ {
				}
				return nil
			}))
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
	}
}

// comesLate exercises lateWrite with the request after skip others, which it reports whether there is.
func (w guardedWrite) comesLate(t *engine.Trial, election string, b *engine.Client, skip int, end func(t *engine.Trial, a *engine.Client, m backend.Member)) bool {
	a := t.Client().In(election)
	b = b.In(election)
	m, next := a.Join("x"), b.Join("y")
	call, arrives, held := a.HoldsBack(t.Ctx, w.make(a, m), skip)
	if !held {
		return false
	}
	err := engine.Await(t, call.Result(), t.Crash(), a.Name+": "+w.name+" has not returned")
	if err == nil && w.needs == engine.Pins { // it was done by another request, so the member would stay
		b.Leave(m)
	} else {
		end(t, a, m)
	}
	b.Refresh()
	if !b.Stands(next) { // all of the line was deleted
		next = b.Join("y")
	}
	b.First(next, t.Crash())
	what := func() string {
		b.Refresh()
		l := b.Line()
		seen := fmt.Sprintf("%s with the header %+v at version %d", engine.ShowLine(l.Members), l.Header, l.Version)
		if t.Can(engine.Records) {
			r := b.Get(theRecord(election))
			seen += fmt.Sprintf(", the record %q at version %d", r.Value, r.Version)
		}
		if t.Can(engine.Items) {
			seen += ", the items " + engine.ShowLine(b.In(theItems(election)).Members())
		}
		return seen
	}
	before := what()
	arrives()
	t.Always(t.TTL/2, "a guarded "+w.name+" took effect after the next in line was first; before that there was "+before, func() bool { return what() == before })
	return true
}

var guardRules = []engine.Rule{{
	ID: "G3.standing", Title: "a leader's guarded writes are done",
	Text:  "Term.Put of a standing leader is done, with and without a version; at another version it fails with ErrVersion.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		record := t.Name + "-work"
		term := a.Leads()
		b.Stand(t.Ctx)
		v, err := term.Put(t.Ctx, record, []byte("1"), backend.Absent)
		t.Want("Put", err)
		_, err = term.Put(t.Ctx, record, []byte("x"), backend.Absent)
		t.Want("Put at another version", err, backend.ErrVersion)
		_, err = term.Put(t.Ctx, record, []byte("2"), v)
		t.Want("Put at the right version", err)
		v, err = term.Put(t.Ctx, record, []byte("3"), backend.Any)
		t.Want("Put without a version", err)
		a.Has(record, "3", v)
	},
}, {
	ID: "G3.own", Title: "nobody writes what may be taken for a member",
	Text:  "Of an election E, Term.Put of E, E.fence, E.history and any name below E/ is refused with ErrInvalid, whatever names the coordinator gives to members.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		term := t.Client().Leads()
		for _, own := range []string{"", ".fence", ".history", "/n_1500000000", "/backup-20261122103000", "/0000000000", "/1700000000", "/a/b"} {
			_, err := term.Put(t.Ctx, t.Name+own, []byte("x"), backend.Any)
			t.Want("Put of E"+own, err, backend.ErrInvalid)
		}
	},
}, {
	ID: "G3.resigned", Title: "no guarded write after resigning",
	Text:  "After Resign, Term.Put fails with ErrNotMember and changes nothing.",
	Needs: []engine.Fault{engine.Records},
	Check: guarded(func(t *engine.Trial, _ *engine.Client, term election.Term) {
		t.Want("Resign", term.Resign(t.Ctx))
	}),
}, {
	ID: "G3.expired", Title: "no guarded write after the session's end",
	Text:  "From the moment at which the coordinator has ended the leader's session, whether or not the leader knows, Term.Put fails with ErrSessionEnded or ErrNotMember and changes nothing.",
	Needs: []engine.Fault{engine.Expire, engine.Records},
	Check: guarded(func(_ *engine.Trial, c *engine.Client, _ election.Term) { c.Inject(engine.Expire) }),
}, {
	ID: "G3.removed", Title: "no guarded write after a removal",
	Text:  "From the moment at which an operator has removed the leader's member, Term.Put fails with ErrNotMember and changes nothing.",
	Needs: []engine.Fault{engine.Remove, engine.Records},
	Check: guarded(func(t *engine.Trial, _ *engine.Client, term election.Term) { t.Remove(term.Member()) }),
}, {
	ID: "G3.dropped", Title: "no guarded write after the election was deleted",
	Text:  "An operator deletes the election, and others join, perhaps under the same keys. Term.Put of the old leader fails and changes nothing.",
	Needs: []engine.Fault{engine.Drop, engine.Records},
	Check: guarded(func(t *engine.Trial, _ *engine.Client, _ election.Term) {
		t.Drop(t.Name)
		c := t.Client()
		for range 3 {
			c.Join("new")
		}
	}),
}, {
	ID: "G3.late", Title: "a write that was held up is refused",
	Text:  "A leader is cut off and calls Term.Put. Another wins after a crash and writes the record; then the old one is healed. Its Put fails, and the record is the new leader's.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines, engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		record := t.Name + "-work"
		term := a.Leads()
		next := b.Stand(t.Ctx)
		heal := a.Inject(engine.Cut)
		late := t.Go("Put of the old leader", func() error {
			_, err := term.Put(t.Ctx, record, []byte("late"), backend.Any)
			return err
		})
		second := next.Wins(t.Crash())
		v, err := second.Put(t.Ctx, record, []byte("second"), backend.Any)
		t.Want("Put of the new leader", err)
		heal()
		if err := engine.Await(t, late.Result(), t.Recovery(), "Put of the old leader has not returned"); err == nil {
			t.Never("Put of a deposed leader was done")
		}
		t.Always(t.TTL/2, "the new leader's record was overwritten", func() bool { return b.Get(record).Version == v })
		second.Resign(context.WithoutCancel(t.Ctx))
	},
}, {
	ID: "G3.held-left", Title: "a guarded write that comes late changes nothing, after its member has left",
	Text:  "A request of a leader's guarded write is held back on its way: of a Put of a new record and of one that is there, with and without a version, of a Delete, of a Pin, and of a Remove of an item, as far as the backend has them. The leader leaves. When the next in line is first, the request arrives: the record, the line, its header and the items stay as they are for half a TTL. So it is with each request that the call sends. Where a Pin is done by another request, the pinned member is taken out instead.",
	Needs: []engine.Fault{engine.HoldBack},
	Check: lateWrite(func(_ *engine.Trial, a *engine.Client, m backend.Member) { a.Leave(m) }),
}, {
	ID: "G3.held-closed", Title: "a guarded write that comes late changes nothing, after its session was closed",
	Text:  "As G3.held-left, when the leader's session is closed.",
	Needs: []engine.Fault{engine.HoldBack},
	Check: lateWrite(func(_ *engine.Trial, a *engine.Client, _ backend.Member) { a.CloseSession() }),
}, {
	ID: "G3.held-expired", Title: "a guarded write that comes late changes nothing, after the end of its session",
	Text:  "As G3.held-left, when the coordinator has ended the leader's session, as an operator does.",
	Needs: []engine.Fault{engine.HoldBack, engine.Expire},
	Check: lateWrite(func(_ *engine.Trial, a *engine.Client, _ backend.Member) { a.Inject(engine.Expire) }),
}, {
	ID: "G3.held-killed", Title: "a guarded write that comes late changes nothing, after a crash",
	Text:  "As G3.held-left, when the leader's client crashes.",
	Needs: []engine.Fault{engine.HoldBack, engine.Kill},
	Check: lateWrite(func(_ *engine.Trial, a *engine.Client, _ backend.Member) { a.Inject(engine.Kill) }),
}, {
	ID: "G3.held-removed", Title: "a guarded write that comes late changes nothing, after a removal",
	Text:  "As G3.held-left, when an operator removes the leader's member.",
	Needs: []engine.Fault{engine.HoldBack, engine.Remove},
	Check: lateWrite(func(t *engine.Trial, _ *engine.Client, m backend.Member) { t.Remove(m) }),
}, {
	ID: "G3.held-dropped", Title: "a guarded write that comes late changes nothing, after the election was deleted",
	Text:  "As G3.held-left, when an operator deletes the whole election, and the next one joins anew.",
	Needs: []engine.Fault{engine.HoldBack, engine.Drop},
	Check: lateWrite(func(t *engine.Trial, _ *engine.Client, m backend.Member) { t.Drop(m.Line) }),
}}
