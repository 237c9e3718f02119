package conformance

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
)

// refused checks that a guarded write of a term that is over is refused, and has
// changed nothing.
func (t *trial) refused(term election.Term, by *client, record, value string, v backend.Version) {
	for _, at := range []backend.Version{0, v} {
		ctx, cancel := t.within(t.h.crash())
		_, err := term.Put(ctx, record, []byte("late"), at)
		cancel()
		if !is(err, backend.ErrNotMember, backend.ErrSessionEnded) {
			t.fatalf("Put of a term that is over returned %v; want ErrNotMember or ErrSessionEnded", err)
		}
	}
	// A write of its own makes the reader as fresh as the refusals.
	by.put(record+"-after", "x", nil)
	by.has(record, value, v)
}

// guarded is a rule that a leader's guarded write is done before an end of its
// term and refused after.
func guarded(end func(t *trial, c *client, term election.Term)) func(*trial) {
	return func(t *trial) {
		a, b := t.client(), t.client()
		record := t.line + "-work"
		term := a.campaign()
		v, err := term.Put(t.ctx, record, []byte("done"), backend.Absent)
		if err != nil {
			t.fatalf("Put of a standing leader: %v", err)
		}
		end(t, a, term)
		t.refused(term, b, record, "done", v)
	}
}

var guardRules = []Rule{{
	ID:    "G3.standing",
	Title: "a leader's guarded writes are done",
	Text:  "Term.Put of a standing leader is done, with and without a version; at another version it fails with ErrVersion.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		record := t.line + "-work"
		term := a.campaign()
		b.campaigns(t.ctx)
		v, err := term.Put(t.ctx, record, []byte("1"), backend.Absent)
		if err != nil {
			t.fatalf("Put: %v", err)
		}
		if _, err = term.Put(t.ctx, record, []byte("x"), backend.Absent); !is(err, backend.ErrVersion) {
			t.fatalf("Put at another version returned %v; want ErrVersion", err)
		}
		if _, err = term.Put(t.ctx, record, []byte("2"), v); err != nil {
			t.fatalf("Put: %v", err)
		}
		if v, err = term.Put(t.ctx, record, []byte("3"), 0); err != nil {
			t.fatalf("Put: %v", err)
		}
		a.has(record, "3", v)
	},
}, {
	ID:    "G3.own",
	Title: "nobody writes what may be taken for a member",
	Text:  "Of an election E, Term.Put of E, E.fence and any name below E/ is refused with ErrInvalid, whatever names the coordinator gives to members.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		term := t.client().campaign()
		for _, own := range []string{"", ".fence", "/n_1500000000", "/backup-20261122103000", "/0000000000", "/1700000000", "/a/b"} {
			if _, err := term.Put(t.ctx, t.line+own, []byte("x"), 0); !is(err, backend.ErrInvalid) {
				t.fatalf("Put of E%s returned %v; want ErrInvalid", own, err)
			}
		}
	},
}, {
	ID:    "G3.resigned",
	Title: "no guarded write after resigning",
	Text:  "After Resign, Term.Put fails with ErrNotMember and changes nothing.",
	Needs: []Fault{Records},
	check: guarded(func(t *trial, _ *client, term election.Term) {
		if err := term.Resign(t.ctx); err != nil {
			t.fatalf("Resign: %v", err)
		}
	}),
}, {
	ID:    "G3.expired",
	Title: "no guarded write after the session's end",
	Text:  "From the moment at which the coordinator has ended the leader's session, whether or not the leader knows, Term.Put fails with ErrSessionEnded or ErrNotMember and changes nothing.",
	Needs: []Fault{Expire, Records},
	check: guarded(func(_ *trial, c *client, _ election.Term) { c.expire() }),
}, {
	ID:    "G3.removed",
	Title: "no guarded write after a removal",
	Text:  "From the moment at which an operator has removed the leader's member, Term.Put fails with ErrNotMember and changes nothing.",
	Needs: []Fault{Remove, Records},
	check: guarded(func(t *trial, _ *client, term election.Term) { t.remove(term.Member()) }),
}, {
	ID:    "G3.dropped",
	Title: "no guarded write after the election was deleted",
	Text:  "An operator deletes the election, and others join, perhaps under the same keys. Term.Put of the old leader fails and changes nothing.",
	Needs: []Fault{Drop, Records},
	check: guarded(func(t *trial, _ *client, _ election.Term) {
		t.drop()
		c := t.client()
		for range 3 {
			c.join("new")
		}
	}),
}, {
	ID:    "G3.late",
	Title: "a write that was held up is refused",
	Text:  "A leader is cut off and calls Term.Put. Another wins after a crash and writes the record; then the old one is healed. Its Put fails, and the record is the new leader's.",
	Needs: []Fault{Cut, Deadlines, Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		record := t.line + "-work"
		term := a.campaign()
		next := b.campaigns(t.ctx)
		heal := a.cut()
		late := t.async(func() error {
			_, err := term.Put(t.ctx, record, []byte("late"), 0)
			return err
		})
		second := next.wins(t.h.crash())
		v, err := second.Put(t.ctx, record, []byte("second"), 0)
		if err != nil {
			t.fatalf("Put of the new leader: %v", err)
		}
		heal()
		if err := await(t, late, t.h.recovery(), "Put of the old leader has not returned"); err == nil {
			t.fatalf("Put of a deposed leader was done")
		}
		t.steady(t.h.TTL/2, "the new leader's record was overwritten", func() bool { return b.get(record).Version == v })
		second.Resign(context.WithoutCancel(t.ctx))
	},
}}
