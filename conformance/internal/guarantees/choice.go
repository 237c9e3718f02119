package guarantees

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/header"
)

// asked is how much later than soon a candidate finds out that it is not ready any more: it asks about
// once a second.
const asked = 2 * time.Second

// errUnready is why the candidates of rules are not ready.
var errUnready = errors.New("no disk")

// A ready is an answer that a rule can change.
type ready struct{ not atomic.Bool }

func (r *ready) options() elect.Options {
	return elect.Options{Ready: func(context.Context) error {
		if r.not.Load() {
			return errUnready
		}
		return nil
	}}
}

// sees waits until op, an operator, sees n in the line, the first of which leads with the term: it may see a
// little later what others did.
func sees(t *engine.Trial, op election.Election, term election.Term, n int) {
	t.Eventually(t.Soon(), "an operator sees the leader, and who stands behind it", func() bool {
		_, line, err := op.Line(t.Ctx)
		t.Want("Line", err)
		return len(line) == n && line[0].Token == term.Token()
	})
}

// askToResign has an operator ask the leader with the term, which is the first of n in line, to resign.
func askToResign(t *engine.Trial, term election.Term, n int, o *operate.ResignOptions) {
	op := t.Client().Elect()
	sees(t, op, term, n)
	_, err := op.AskToResign(t.Ctx, o)
	t.Want("AskToResign", err)
	engine.Await(t, term.Context().Done(), t.Soon(), "the leader has not been told")
}

// saysUnready waits until Line says to the client that of the n in line the one with that number, from 0 on,
// is not ready, and that all others are.
func saysUnready(t *engine.Trial, c *engine.Client, which, n int) {
	t.Eventually(t.Soon(), "Line says who is not ready", func() bool {
		_, line, err := c.Elect().Line(t.Ctx)
		t.Want("Line", err)
		for i, l := range line {
			if (l.NotReady != "") != (i == which) || i == which && l.NotReady != errUnready.Error() {
				return false
			}
		}
		return len(line) == n
	})
}

var choiceRules = []engine.Rule{{
	ID: "Choice.ready", Title: "one that is not ready is passed over",
	Text:  "Behind a leader stand one that is not ready, which Line says with its reason, and one that is. When the leader resigns, the latter wins soon; the former does not, until it is ready and the latter resigns.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		term := cs[0].Leads()
		var r ready
		r.not.Store(true)
		second := cs[1].StandWith(t.Ctx, r.options())
		third := cs[2].Stand(t.Ctx)
		saysUnready(t, cs[0], 1, 3)
		term.Resign(t.Ctx)
		next := third.Wins(t.Soon())
		second.Joins(t.Soon())
		t.Always(t.TTL/4, "one that is not ready won", func() bool { return !second.Leading() })
		r.not.Store(false)
		next.Resign(t.Ctx)
		second.Wins(t.Soon() + asked)
	},
}, {
	ID: "Choice.unready-leader", Title: "a leader that is not ready hands over",
	Text:  "A leader that is not ready any more leads on as long as nobody stands behind it. When another joins, its term ends soon, with a LostError because of ErrNotReady, and the other wins once it has resigned.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(2)
		var r ready
		term := cs[0].StandWith(t.Ctx, r.options()).Wins(t.Soon())
		r.not.Store(true)
		t.Always(asked+t.TTL/4, "the leader gave up, though nobody stands behind it", func() bool { return term.Check() == nil })
		other := cs[1].Stand(t.Ctx)
		engine.Await(t, term.Context().Done(), t.Soon()+asked, "the term has not ended")
		lost(t, term, elect.ErrNotReady)
		term.Resign(t.Ctx)
		other.Wins(t.Soon())
	},
}, {
	ID: "Choice.priority", Title: "of those that are ready the preferred one leads",
	Text:  "Behind a leader join candidates with the priorities 0, 2 and 1. The leader leads on. When it resigns, the one with 2 wins, then the one with 1, and then the one with 0; none wins before.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		term := cs[0].Leads()
		zero := cs[1].Stand(t.Ctx)
		two := cs[2].StandWith(t.Ctx, elect.Options{Priority: 2})
		one := cs[3].StandWith(t.Ctx, elect.Options{Priority: 1})
		two.Waits() // by then it has noted in the header that candidates differ
		t.Always(t.TTL/4, "the leader was disturbed", func() bool { return term.Check() == nil })
		term.Resign(t.Ctx)
		term = two.Wins(t.Soon())
		if zero.Leading() || one.Leading() {
			t.Fatalf("one with a smaller priority won while %s led", two.Name)
		}
		term.Resign(t.Ctx)
		term = one.Wins(t.Soon())
		if zero.Leading() {
			t.Fatalf("%s won while %s led", zero.Name, one.Name)
		}
		term.Resign(t.Ctx)
		zero.Wins(t.Soon())
	},
}, {
	ID: "Choice.site", Title: "leadership stays in its site while one of it is ready",
	Text:  "Behind a leader of one site, which the header names, stand a candidate of another, one of the leader's that is not ready, and one of the leader's that is. When the leader resigns, the last wins soon, and neither other before it. When that one resigns, the one of the other site wins: the third, which stands in line, is still not ready.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		term := cs[0].StandWith(t.Ctx, elect.Options{Site: "east"}).Wins(t.Soon())
		t.Eventually(t.Soon(), "the header names the leader's site", func() bool { return cs[1].Header().Choice.Site == "east" })
		second := cs[1].StandWith(t.Ctx, elect.Options{Site: "west"})
		var r ready
		r.not.Store(true)
		unready := r.options()
		unready.Site = "east"
		third := cs[2].StandWith(t.Ctx, unready)
		fourth := cs[3].StandWith(t.Ctx, elect.Options{Site: "east"})
		saysUnready(t, cs[0], 2, 4)
		term.Resign(t.Ctx)
		next := fourth.Wins(t.Soon())
		if second.Leading() || third.Leading() {
			t.Fatalf("another won while %s led", fourth.Name)
		}
		second.Joins(t.Soon())
		third.Joins(t.Soon())
		next.Resign(t.Ctx)
		second.Wins(t.Soon() + asked)
		if third.Leading() {
			t.Fatalf("%s won while %s led", third.Name, second.Name)
		}
	},
}, {
	ID: "Choice.wish", Title: "leadership goes to the one that is wished for",
	Text:  "An operator asks the leader of four to resign in favour of the fourth. The fourth wins soon after the leader has resigned, and neither the second nor the third before it; when it resigns, the next in line wins.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		term := cs[0].Leads()
		second, third, fourth := cs[1].Stand(t.Ctx), cs[2].Stand(t.Ctx), cs[3].Stand(t.Ctx)
		askToResign(t, term, 4, &operate.ResignOptions{To: fourth.Name})
		term.Resign(t.Ctx)
		next := fourth.Wins(t.Soon())
		if second.Leading() || third.Leading() {
			t.Fatalf("another won while %s led", fourth.Name)
		}
		second.Joins(t.Soon())
		third.Joins(t.Soon())
		next.Resign(t.Ctx)
		t.Eventually(t.Soon(), "the next in line wins", func() bool { return second.Leading() || third.Leading() })
	},
}, {
	ID: "Choice.wish-lapses", Title: "a wish ends with the one that was wished for",
	Text:  "An operator asks the leader to resign in favour of the third, which leaves the line before the leader does. The second wins soon after the leader has resigned.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		term := cs[0].Leads()
		second := cs[1].Stand(t.Ctx)
		ctx, cancel := context.WithCancelCause(t.Ctx)
		defer cancel(nil)
		third := cs[2].Stand(ctx)
		askToResign(t, term, 3, &operate.ResignOptions{To: third.Name})
		cancel(engine.ErrCancelled)
		third.GivesUp(t.Soon(), engine.ErrCancelled)
		term.Resign(t.Ctx)
		second.Wins(t.Soon())
	},
}, {
	ID: "Choice.foreign", Title: "a foreign client keeps its place",
	Text:  "Between a leader and the one that is wished for stand a candidate and a member of a foreign client. When the leader resigns, the candidate gives way, the foreign member is first soon, and nobody wins as long as it stands. Then the one that is wished for wins.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		term := cs[0].Leads()
		second := cs[1].Stand(t.Ctx)
		m := cs[2].Join("a foreign client")
		fourth := cs[3].Stand(t.Ctx)
		askToResign(t, term, 4, &operate.ResignOptions{To: fourth.Name})
		term.Resign(t.Ctx)
		cs[2].First(m, t.Soon())
		t.Always(t.TTL/4, "somebody won while a foreign client was first", func() bool { return !second.Leading() && !fourth.Leading() })
		cs[2].Leave(m)
		fourth.Wins(t.Soon())
		if second.Leading() {
			t.Fatalf("%s won while %s led", second.Name, fourth.Name)
		}
	},
}, {
	ID: "Choice.pause", Title: "nobody leads while the election is paused",
	Text:  "An operator pauses an election. Its leader is told, with a LostError because of ErrAsked. Nobody wins for half a TTL, and no foreign client is first; State says who has paused it and why. After Resume by another client, the next in line wins soon, with a larger token.",
	Needs: []engine.Fault{engine.Records, engine.Pins}, Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		term := cs[0].Leads()
		second := cs[1].Stand(t.Ctx)
		op := cs[3].Elect()
		paused := t.Go("Pause", func() error { _, err := op.Pause(t.Ctx, "a rule"); return err })
		engine.Await(t, term.Context().Done(), t.Soon(), "the leader has not been told")
		lost(t, term, elect.ErrAsked)
		term.Resign(t.Ctx)
		paused.Returns(t.Soon())
		t.Eventually(t.Soon(), "the second stands behind the gate", func() bool {
			l := cs[2].Members()
			return len(l) == 2 && l[0].Pinned
		})
		m := cs[2].Join("a foreign client")
		t.Always(t.TTL/2, "somebody won, or was first, while the election was paused", func() bool {
			return !second.Leading() && !cs[2].Ahead(m).First
		})
		s, err := op.State(t.Ctx)
		if err != nil || !s.Vacant() || !s.Paused || s.Gate.Value != "a rule" {
			t.Fatalf("State of the paused election returned %+v, %v", s, err)
		}
		_, err = cs[2].Elect().Resume(t.Ctx, nil)
		t.Want("Resume", err)
		if next := second.Wins(t.Soon()); next.Token() <= term.Token() {
			t.Fatalf("token %d after %d", next.Token(), term.Token())
		}
	},
}, {
	ID: "Choice.token", Title: "a request to resign names its term",
	Text:  "A request with the token of a term that has ended fails with ErrOtherLeader, and the leader leads on, also while the header asks for a number that is no term's; a request with the leader's token ends its term at once. So does one that is made after the fence was raised in the term.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(2)
		first := cs[0].Leads()
		first.Resign(t.Ctx)
		cs[0].PutHeader(func(h *header.Header) { h.Resign = backend.MaxFence })
		term := cs[1].Leads()
		op := t.Client().Elect()
		sees(t, op, term, 1)
		_, err := op.AskToResign(t.Ctx, &operate.ResignOptions{Token: first.Token()})
		t.Want("AskToResign of an ended term", err, operate.ErrOtherLeader)
		t.Always(t.TTL/4, "the leader was disturbed", func() bool { return term.Check() == nil })
		askToResign(t, term, 1, &operate.ResignOptions{Token: term.Token()})
		lost(t, term, elect.ErrAsked)
		term.Resign(t.Ctx)
		term = cs[0].Leads()
		sees(t, op, term, 1)
		cs[1].PutFence(1000)
		_, err = op.AskToResign(t.Ctx, nil)
		t.Want("AskToResign after the fence was raised", err)
		engine.Await(t, term.Context().Done(), t.Soon(), "the leader has not been told")
		lost(t, term, elect.ErrAsked)
	},
}}
