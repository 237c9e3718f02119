package conformance

import (
	"github.com/succession-dev/succession/backend"
)

var leaveRules = []Rule{{
	ID:    "L4.again",
	Title: "leaving twice is not an error",
	Text:  "Leave of a member that has left returns nil, at once and after others have joined, and takes out nobody else, also when a crash has passed.",
	check: func(t *trial) {
		a := t.client()
		m := a.join("x")
		a.leave(m)
		a.leave(m)
		later := a.join("y")
		a.leave(m)
		last := a.join("z")
		a.showsNow(later, last)
		a.settles(later, last)
	},
}, {
	ID:    "L4.removed",
	Title: "leaving after a removal is not an error",
	Text:  "Leave of a member that an operator has removed returns nil, and takes out nobody else.",
	Needs: []Fault{Remove},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m, other := a.join("x"), b.join("y")
		t.remove(m)
		a.leave(m)
		b.shows(other)
	},
}, {
	ID:    "L4.middle",
	Title: "only that member leaves",
	Text:  "When the second, the last and the first of five leave in turn, the line shows exactly the others each time.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		var line []backend.Member
		for range 5 {
			line = append(line, a.join("x"))
		}
		a.leave(line[1])
		b.shows(line[0], line[2], line[3], line[4])
		a.leave(line[4])
		b.shows(line[0], line[2], line[3])
		a.leave(line[0])
		b.shows(line[2], line[3])
	},
}, {
	ID:    "L4.foreign",
	Title: "another's member is not taken out",
	Text:  "Leave of a member that another session joined, and that is not pinned, is refused or does nothing: it stands on, also when a crash has passed.",
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m, mine := a.join("x"), b.join("y")
		ctx, cancel := t.within(t.h.soon())
		defer cancel()
		err := b.live().Leave(ctx, m)
		t.log.add("b", "leaving another's member: %v", err)
		last := b.join("z")
		b.showsNow(m, mine, last)
		b.settles(m, mine, last)
		a.leads(m)
	},
}, {
	ID:    "L4.same-key",
	Title: "a member under the same key is not taken out",
	Text:  "Leave of a member that had the key of one who stands, at an earlier position, is refused or does nothing: the one who stands does so on, also when a crash has passed.",
	check: func(t *trial) {
		a := t.client()
		a.leave(a.join("x"))
		m := a.join("y")
		old := m
		old.Position--
		ctx, cancel := t.within(t.h.soon())
		defer cancel()
		err := a.live().Leave(ctx, old)
		t.log.add("a", "leaving an earlier member of the same key: %v", err)
		last := a.join("z")
		a.showsNow(m, last)
		a.settles(m, last)
		a.leads(m)
	},
}, {
	ID:    "L4.dropped",
	Title: "the new line is safe from who stood in the old",
	Text:  "An operator deletes the election, and others join. Leave of the old members by their session takes out none of the new, whatever keys these have, also when a crash has passed.",
	Needs: []Fault{Drop},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		old := []backend.Member{a.join("0"), a.join("1"), a.join("2")}
		t.drop()
		b.gone(old[2], t.h.soon())
		line := []backend.Member{b.join("0"), b.join("1"), b.join("2")}
		ctx, cancel := t.within(t.h.soon())
		defer cancel()
		for _, m := range old {
			a.live().Leave(ctx, m)
		}
		line = append(line, b.join("last"))
		b.showsNow(line...)
		b.settles(line...)
	},
}, {
	ID:    "L4.ended",
	Title: "leaving after the end of the session",
	Text:  "After the coordinator has ended the session, Leave fails with ErrSessionEnded, the member is gone, and one that the client joined under its next session stands.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		s, m := a.live(), a.join("x")
		a.expire()
		await(t, s.Done(), t.h.crash(), "Done has not closed after the end of the session")
		next := a.join("y")
		ctx, cancel := t.within(t.h.soon())
		defer cancel()
		if err := s.Leave(ctx, m); !is(err, backend.ErrSessionEnded) {
			t.fatalf("Leave under an ended session returned %v; want ErrSessionEnded", err)
		}
		b.shows(next)
	},
}, {
	ID:    "L4.lost-answer",
	Title: "a lost answer of Leave does not bring the member back",
	Text:  "Where the answer of Leave is lost, the member is gone soon, Leave returns nil or ErrUnavailable within a crash, and the others stand. When a crash has passed it is still so.",
	Needs: []Fault{LoseAnswer},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		first, m, last := b.join("0"), a.join("1"), a.join("2")
		a.live()
		a.loseAnswer()
		ctx, cancel := t.within(t.h.crash())
		defer cancel()
		if err := a.live().Leave(ctx, m); err != nil && !is(err, backend.ErrUnavailable) {
			t.fatalf("Leave with a lost answer returned %v; want nil or ErrUnavailable", err)
		}
		b.showsWithin(t.h.soon(), first, last)
		b.settles(first, last)
	},
}}
