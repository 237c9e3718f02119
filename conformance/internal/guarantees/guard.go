package guarantees

import (
	"context"

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
	// The reader's own write makes it as fresh as the refusals.
	by.Put(record+"-after", "x", nil)
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
}}
