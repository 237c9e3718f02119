package conformance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
)

// told is a rule that a leader learns of its loss at once, with one of the reasons.
func told(lose func(t *trial, c *client, term election.Term), reasons ...error) func(*trial) {
	return func(t *trial) {
		b := t.client()
		leaders := make([]*client, moments)
		terms := make([]election.Term, moments)
		for i, line := range t.lines() {
			leaders[i] = t.client().in(line)
			terms[i] = leaders[i].campaign()
			b.in(line).campaigns(t.ctx)
		}
		t.steady(t.h.TTL/4, "a healthy leader lost its term", func() bool {
			return !slices.ContainsFunc(terms, func(term election.Term) bool { return term.Check() != nil || term.Context().Err() != nil })
		})
		atOnce(t, "the context of the term was not cancelled", func(i int) <-chan struct{} {
			lose(t, leaders[i], terms[i])
			return terms[i].Context().Done()
		})
		for _, term := range terms {
			t.lost(term, reasons...)
		}
	}
}

// lost checks how a term that is over says so.
func (t *trial) lost(term election.Term, reasons ...error) {
	cause := context.Cause(term.Context())
	var lost *elect.LostError
	switch {
	case !errors.As(cause, &lost) || !errors.Is(cause, elect.ErrLost):
		t.fatalf("the cause of the term's context is %v; want a LostError", cause)
	case lost.Election != term.Member().Line || lost.Token != term.Token():
		t.fatalf("the LostError is of %s, token %d; want %s, token %d", lost.Election, lost.Token, term.Member().Line, term.Token())
	case !is(lost, reasons...):
		t.fatalf("the term was lost because of: %v; want one of %v", lost.Err, reasons)
	case !errors.Is(term.Check(), elect.ErrLost):
		t.fatalf("Check of a lost term says %v", term.Check())
	}
	t.log.add("suite", "told: %v", cause)
}

var toldRules = []Rule{{
	ID:    "G7.expired",
	Title: "a leader learns that its session ended",
	Text:  "When the coordinator ends the leader's session, the term's context is cancelled at once, with a LostError that says so; Check says the same. Five elections.",
	Needs: []Fault{Expire},
	check: told(func(_ *trial, c *client, _ election.Term) { c.expire() }, backend.ErrSessionEnded, elect.ErrDeadline, elect.ErrRemoved),
}, {
	ID:    "G7.removed",
	Title: "a leader learns that it was removed",
	Text:  "When an operator removes the leader's member, the term's context is cancelled at once, with a LostError because of ErrRemoved. Five elections.",
	Needs: []Fault{Remove},
	check: told(func(t *trial, _ *client, term election.Term) { t.remove(term.Member()) }, elect.ErrRemoved),
}, {
	ID:    "G7.dropped",
	Title: "a leader learns that the election was deleted",
	Text:  "When an operator deletes the election, the term's context is cancelled at once, with a LostError because of ErrRemoved. Five elections.",
	Needs: []Fault{Drop},
	check: told(func(t *trial, _ *client, term election.Term) { t.dropLine(term.Member().Line) }, elect.ErrRemoved),
}, {
	ID:    "G7.asked",
	Title: "a leader learns that it is to resign",
	Text:  "When another client asks the leader to resign, the term's context is cancelled at once, with a LostError because of ErrAsked. Five elections.",
	Needs: []Fault{Records},
	check: told(func(t *trial, _ *client, term election.Term) {
		l, err := t.client().in(term.Member().Line).elect().AskToResign(t.ctx)
		if err != nil || l.Token != term.Token() {
			t.fatalf("AskToResign returned %+v, %v; want the leader with token %d", l, err, term.Token())
		}
	}, elect.ErrAsked),
}, {
	ID:    "G7.closed",
	Title: "a leader learns that its backend was closed",
	Text:  "When the leader's own backend is closed, the term's context is cancelled at once, with a LostError. Five elections.",
	check: told(func(_ *trial, c *client, _ election.Term) { c.Close() }, elect.ErrLost),
}, {
	ID:    "G7.cut",
	Title: "a leader that is cut off is told before its deadline",
	Text:  "When a leader is cut off, its context is cancelled and Check fails no later than the deadline of its session, which is no later than TTL after the cut; three times, at other moments between heartbeats.",
	Needs: []Fault{Cut, Deadlines},
	check: func(t *trial) {
		for i := range 3 {
			a := t.client()
			term := a.campaign()
			s := a.live()
			t.pass(time.Duration(i)*t.h.TTL/7, "so that the cut comes at another moment between heartbeats")
			heal := a.cut()
			end := time.Now().Add(t.h.TTL + grain)
			t.poll(t.h.TTL+t.h.soon(), "the context of the term is cancelled", func() bool {
				// The deadline first: what is read after it is later.
				passed := time.Until(s.Deadline()) <= 0
				if passed && term.Check() == nil {
					t.fatalf("the deadline has passed, and Check says nil")
				}
				return term.Context().Err() != nil
			})
			if d := time.Since(end); d > t.h.soon()/4 {
				t.fatalf("the context was cancelled %v later than TTL after the cut", d)
			}
			t.lost(term, elect.ErrDeadline, backend.ErrSessionEnded)
			heal()
			term.Resign(t.ctx)
			t.client().showsWithin(t.h.crash())
		}
	},
}, {
	ID:    "G7.margin",
	Title: "a term ends a margin before its deadline",
	Text:  "Term.Deadline is Margin before the session's deadline, a tenth of TTL by default; when a leader is cut off, Check fails from Term.Deadline on.",
	Needs: []Fault{Cut, Deadlines},
	check: func(t *trial) {
		a := t.client()
		term := a.campaign()
		s := a.live()
		t.poll(t.h.soon(), "the deadlines of term and session are a tenth of TTL apart", func() bool {
			d := s.Deadline().Sub(term.Deadline()) - s.TTL()/10
			return -grain <= d && d <= grain
		})
		a.cut()
		t.poll(t.h.TTL+t.h.soon(), "the term's deadline passes", func() bool { return time.Until(term.Deadline()) <= 0 })
		if term.Check() == nil {
			t.fatalf("the term's deadline has passed, and Check says nil")
		}
	},
}, {
	ID:    "G7.longest",
	Title: "the longest margin can be kept",
	Text:  "Of five terms in a row whose Margin is MaxMargin of the session, each watched for half a TTL, which is longer than between two heartbeats, three hold at least: on a busy machine one may be lost. A candidate with a longer Margin is refused with ErrInvalid.",
	Needs: []Fault{Deadlines},
	check: func(t *trial) {
		a := t.client()
		most := a.live().MaxMargin()
		held := 0
		for range 5 {
			term := await(t, a.campaignsWith(t.ctx, elect.Options{Margin: most}).won, t.h.recovery(), "a candidate with the longest margin does not lead")
			select {
			case <-term.Context().Done():
			case <-time.After(t.h.TTL / 2):
				held++
			}
			term.Resign(t.ctx)
		}
		if held < 3 {
			t.fatalf("of five terms with a margin of %v, %d have lasted for half a TTL", most, held)
		}
		_, err := contest(t.ctx, a.election(a.line, &elect.Options{ID: a.name, Margin: most + time.Millisecond}))
		if !is(err, backend.ErrInvalid) {
			t.fatalf("a margin longer than MaxMargin: Campaign returned %v; want ErrInvalid", err)
		}
	},
}}
