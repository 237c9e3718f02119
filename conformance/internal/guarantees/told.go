package guarantees

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
)

// told returns the check of a rule: a leader learns of its loss at once, with one of the
// reasons.
func told(lose func(t *engine.Trial, c *engine.Client, term election.Term), reasons ...error) func(*engine.Trial) {
	return func(t *engine.Trial) {
		b, leaders := t.Client(), t.Apart()
		var terms []election.Term
		for _, c := range leaders {
			terms = append(terms, c.Leads())
			b.In(c.Election).Stand(t.Ctx)
		}
		t.Always(t.TTL/4, "a healthy leader lost its term", func() bool {
			return !slices.ContainsFunc(terms, func(term election.Term) bool { return term.Check() != nil || term.Context().Err() != nil })
		})
		engine.AtOnce(t, "the context of the term was not cancelled", func(i int) <-chan struct{} {
			lose(t, leaders[i], terms[i])
			return terms[i].Context().Done()
		})
		for _, term := range terms {
			lost(t, term, reasons...)
		}
	}
}

// lost checks that the context and Check of a lost term say so, with one of the reasons.
func lost(t *engine.Trial, term election.Term, reasons ...error) {
	cause := context.Cause(term.Context())
	var lost *elect.LostError
	switch {
	case !errors.As(cause, &lost) || !errors.Is(cause, elect.ErrLost):
		t.Fatalf("the cause of the term's context is %v; want a LostError", cause)
	case lost.Election != term.Member().Line || lost.Token != term.Token():
		t.Never("the LostError is of %s, token %d; want %s, token %d", lost.Election, lost.Token, term.Member().Line, term.Token())
	case !engine.Is(lost, reasons...):
		t.Fatalf("the term was lost because of: %v; want one of %v", lost.Err, reasons)
	case !errors.Is(term.Check(), elect.ErrLost):
		t.Fatalf("Check of a lost term says %v", term.Check())
	}
	t.Log("suite", "told: %v", cause)
}

var toldRules = []engine.Rule{{
	ID: "G7.expired", Title: "a leader learns that its session ended",
	Text:  "When the coordinator ends the leader's session, the term's context is cancelled at once, with a LostError that says so; Check says the same. Five elections.",
	Needs: []engine.Fault{engine.Expire},
	Check: told(func(_ *engine.Trial, c *engine.Client, _ election.Term) { c.Inject(engine.Expire) }, backend.ErrSessionEnded, elect.ErrDeadline, elect.ErrRemoved),
}, {
	ID: "G7.removed", Title: "a leader learns that it was removed",
	Text:  "When an operator removes the leader's member, the term's context is cancelled at once, with a LostError because of ErrRemoved. Five elections.",
	Needs: []engine.Fault{engine.Remove},
	Check: told(func(t *engine.Trial, _ *engine.Client, term election.Term) { t.Remove(term.Member()) }, elect.ErrRemoved),
}, {
	ID: "G7.dropped", Title: "a leader learns that the election was deleted",
	Text:  "When an operator deletes the election, the term's context is cancelled at once, with a LostError because of ErrRemoved. Five elections.",
	Needs: []engine.Fault{engine.Drop},
	Check: told(func(t *engine.Trial, _ *engine.Client, term election.Term) { t.Drop(term.Member().Line) }, elect.ErrRemoved),
}, {
	ID: "G7.asked", Title: "a leader learns that it is to resign",
	Text:  "When another client asks the leader to resign, the term's context is cancelled at once, with a LostError because of ErrAsked. Five elections.",
	Needs: []engine.Fault{engine.Records},
	Check: told(func(t *engine.Trial, _ *engine.Client, term election.Term) {
		l, err := t.Client().In(term.Member().Line).Elect().AskToResign(t.Ctx, nil)
		if err != nil || l.Token != term.Token() {
			t.Fatalf("AskToResign returned %+v, %v; want the leader with token %d", l, err, term.Token())
		}
	}, elect.ErrAsked),
}, {
	ID: "G7.closed", Title: "a leader learns that its backend was closed",
	Text:  "When the leader's own backend is closed, the term's context is cancelled at once, with a LostError. Five elections.",
	Check: told(func(_ *engine.Trial, c *engine.Client, _ election.Term) { c.Close() }, elect.ErrLost),
}, {
	ID: "G7.cut", Title: "a leader that is cut off is told before its deadline",
	Text:  "When a leader is cut off, its context is cancelled and Check fails no later than the deadline of its session, which is no later than TTL after the cut; three times, at other moments between heartbeats.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines}, Check: func(t *engine.Trial) {
		for i := range 3 {
			a := t.Client()
			term := a.Leads()
			s := a.Live()
			t.Pass(time.Duration(i)*t.TTL/7, "so that the cut comes at another moment between heartbeats")
			heal := a.Inject(engine.Cut)
			end := time.Now().Add(t.TTL + engine.Grain)
			t.Eventually(t.TTL+t.Soon(), "the context of the term is cancelled", func() bool {
				// The deadline is read first, so that Check is later than it.
				passed := time.Until(s.Deadline()) <= 0
				if passed && term.Check() == nil {
					t.Never("the deadline has passed, and Check says nil")
				}
				return term.Context().Err() != nil
			})
			if d := time.Since(end); d > t.Soon()/4 {
				t.Fatalf("the context was cancelled %v later than TTL after the cut", d)
			}
			lost(t, term, elect.ErrDeadline, backend.ErrSessionEnded)
			heal()
			term.Resign(t.Ctx)
			t.Client().Shows(t.Crash())
		}
	},
}, {
	ID: "G7.margin", Title: "a term ends a margin before its deadline",
	Text:  "Term.Deadline is Margin before the session's deadline, a tenth of TTL by default; when a leader is cut off, Check fails from Term.Deadline on.",
	Needs: []engine.Fault{engine.Cut, engine.Deadlines}, Check: func(t *engine.Trial) {
		a := t.Client()
		term := a.Leads()
		s := a.Live()
		t.Eventually(t.Soon(), "the deadlines of term and session are a tenth of TTL apart", func() bool {
			d := s.Deadline().Sub(term.Deadline()) - s.TTL()/10
			return -engine.Grain <= d && d <= engine.Grain
		})
		a.Inject(engine.Cut)
		t.Eventually(t.TTL+t.Soon(), "the term's deadline passes", func() bool { return time.Until(term.Deadline()) <= 0 })
		if term.Check() == nil {
			t.Never("the term's deadline has passed, and Check says nil")
		}
	},
}, {
	ID: "G7.longest", Title: "the longest margin can be kept",
	Text:  "Of five terms in a row whose Margin is MaxMargin of the session, each watched for half a TTL, which is longer than between two heartbeats, three hold at least: on a busy machine one may be lost. A candidate with a longer Margin is refused with ErrInvalid.",
	Needs: []engine.Fault{engine.Deadlines}, Check: func(t *engine.Trial) {
		a := t.Client()
		most := a.Live().MaxMargin()
		held := 0
		for range 5 {
			term := a.StandWith(t.Ctx, elect.Options{Margin: most}).Wins(t.Recovery())
			select {
			case <-term.Context().Done():
			case <-time.After(t.TTL / 2):
				held++
			}
			term.Resign(t.Ctx)
		}
		if held < 3 {
			t.Fatalf("of five terms with a margin of %v, %d have lasted for half a TTL", most, held)
		}
		_, err := a.CampaignWith(t.Ctx, elect.Options{Margin: most + time.Millisecond})
		t.Want("Campaign with a margin longer than MaxMargin", err, backend.ErrInvalid)
	},
}, {
	ID: "G7.released", Title: "a leader whose backend is closed is told before another leads",
	Text: "Ten times the backend of a leader is closed while another waits. When the other has won, the context of the leader's term has ended, and Check fails.",
	Check: func(t *engine.Trial) {
		next := t.Client()
		for range 10 {
			a := t.Client()
			term := a.Leads()
			waiting := next.Stand(t.Ctx)
			waiting.Waits()
			closing := t.Go(a.Name+": Close", a.Close)
			won := waiting.Wins(t.Soon())
			if term.Context().Err() == nil || term.Check() == nil {
				t.Never("%s leads, and the term of %s, whose backend was closed, has not ended", next.Name, a.Name)
			}
			t.Want("the cause of the term's context", context.Cause(term.Context()), backend.ErrSessionEnded)
			closing.Returns(t.Soon())
			won.Resign(t.Ctx)
		}
	},
}}
