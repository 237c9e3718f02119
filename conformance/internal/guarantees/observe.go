package guarantees

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/history"
)

var observeRules = []engine.Rule{{
	ID: "G10.sees", Title: "observers see leader, acknowledgement and vacancy",
	Text: "An observer of an election that was never used sees nobody soon; then, each after its slow re-check at the latest, the leader not acknowledged, the same acknowledged (where there are records), the next leader, and nobody. It is told of each once.",
	Check: func(t *engine.Trial) {
		a, b, watcher := t.Client(), t.Client(), t.Client()
		o := watcher.Observe(t.Ctx)
		late := t.Recheck() + t.Soon()
		o.Sees(t.Soon(), "nobody", elect.State.Vacant)
		term := a.Leads()
		o.SeesLeader(term)
		o.Sees(late, "no acknowledgement", func(s elect.State) bool { return !s.Leader.Acknowledged && s.Leader.ID == "a" })
		if t.Can(engine.Records) {
			if err := term.Acknowledge(t.Ctx); err != nil {
				t.Fatalf("Acknowledge: %v", err)
			}
			o.Sees(late, "the acknowledgement", func(s elect.State) bool { return s.Leader.Acknowledged && s.Leader.Token == term.Token() })
		}
		next := b.Stand(t.Ctx)
		term.Resign(t.Ctx)
		second := next.Wins(t.Soon())
		o.SeesLeader(second)
		o.Sees(late, "no acknowledgement", func(s elect.State) bool { return !s.Leader.Acknowledged && s.Leader.ID == "b" })
		second.Resign(t.Ctx)
		o.Sees(late, "nobody", elect.State.Vacant)
		o.Ordered()
	},
}, {
	ID: "G10.churn", Title: "observers never go back, and end on the truth",
	Text: "While four candidates lead in turn for thirty terms, two observers see tokens that never fall, though they may skip; when the churn is over and one leads, both see it.",
	Check: func(t *engine.Trial) {
		cs := t.Clients(4)
		t.Judged(history.Rules{})
		watchers := []*engine.Observer{t.Client().Observe(t.Ctx), t.Client().Observe(t.Ctx)}
		r := t.Race(cs, t.Tick())
		t.Eventually(t.Limit(), "thirty terms come to pass", func() bool { return r.Count() >= 30 })
		r.Stop()
		term := cs[0].Leads()
		for _, o := range watchers {
			o.SeesLeader(term)
			o.Ordered()
		}
	},
}, {
	ID: "G10.expired", Title: "observers outlive their session",
	Text:  "The coordinator ends the session of an observer, and then of the leader. The observer is told of no error, and sees the next leader after its slow re-check at the latest.",
	Needs: []engine.Fault{engine.Expire}, Check: func(t *engine.Trial) {
		a, b, watcher := t.Client(), t.Client(), t.Client()
		term := a.Leads()
		o := watcher.Observe(t.Ctx)
		o.SeesLeader(term)
		watcher.Inject(engine.Expire)
		next := b.Stand(t.Ctx)
		a.Inject(engine.Expire)
		o.SeesLeader(next.Wins(t.Crash()))
		if o.Ended() {
			t.Fatalf("the observation has ended")
		}
		o.Ordered()
	},
}, {
	ID: "G10.ends", Title: "an observation ends with its context",
	Text: "When its context ends, Observe ends soon with the cause, whether somebody leads or nobody does; a consumer that breaks off leaves no goroutine.",
	Check: func(t *engine.Trial) {
		a, watcher := t.Client(), t.Client()
		for range 2 {
			ctx, cancel := context.WithCancelCause(t.Ctx)
			o := watcher.Observe(ctx)
			o.Sees(t.Recheck()+t.Soon(), "who leads", func(elect.State) bool { return true })
			cancel(engine.ErrCancelled)
			o.Ends(t.Soon(), engine.ErrCancelled)
			if len(a.Members()) == 0 {
				a.Leads()
			}
		}
		left := t.Started(func() {
			for _, err := range watcher.Elect().Observe(t.Ctx) {
				if err != nil {
					t.Fatalf("Observe: %v", err)
				}
				break
			}
		})
		left.End("goroutines are left of an observation")
	},
}, {
	ID: "G10.line", Title: "Line and State tell the truth",
	Text: "Line shows all candidates in order with ID, token and key, and State says that the first leads; both are empty where nobody stands, and AskToResign then fails with ErrNoLeader.",
	Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		e := cs[2].Elect()
		if s, err := e.State(t.Ctx); err != nil || s != (elect.State{}) {
			t.Fatalf("State of an empty election is %+v, %v", s, err)
		}
		if _, err := e.AskToResign(t.Ctx, nil); !errors.Is(err, elect.ErrNoLeader) {
			t.Fatalf("AskToResign of an empty election returned %v; want ErrNoLeader", err)
		}
		for i, c := range cs {
			if st := c.Stand(t.Ctx); i == 0 {
				st.Wins(t.Soon()) // a token may grow until it is that of a leader
			}
		}
		now, line, err := e.Line(t.Ctx)
		if err != nil || len(line) != 3 {
			t.Fatalf("Line is %+v, %v; want three candidates", line, err)
		}
		for i, l := range line {
			if l.ID != cs[i].Name || i > 0 && l.Token <= line[i-1].Token || l.Key == "" {
				t.Fatalf("Line shows %+v in place %d; want %s", l, i, cs[i].Name)
			}
		}
		if s, err := e.State(t.Ctx); err != nil || s != now || s.Leader.Candidate != line[0] {
			t.Fatalf("State is %+v, %v; want %+v, whose leader is %+v", s, err, now, line[0])
		}
	},
}, {
	ID: "G10.history", Title: "the history says who led, and why that ended",
	Text:  "Three lead in turn and keep a history of two terms; the first two resign. History soon has the last two, with ID and token, in the order of tokens: the first of them has ended and says that it resigned, and the other one lasts.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		terms := make([]election.Term, len(cs))
		for i, c := range cs {
			terms[i] = c.StandWith(t.Ctx, elect.Options{History: 2}).Wins(t.Soon())
			if i < 2 {
				t.Want("Resign", terms[i].Resign(t.Ctx))
			}
		}
		var got []operate.Past
		defer func() { t.Log(cs[0].Name, "last saw the history %+v", got) }()
		t.Eventually(t.Soon(), "the history has the last two terms", func() bool {
			var err error
			got, err = cs[0].Elect().History(t.Ctx)
			t.Want("History", err)
			if len(got) != 2 {
				return false
			}
			for i, p := range got {
				if p.ID != cs[i+1].Name || p.Token != terms[i+1].Token() {
					return false
				}
			}
			return got[0].Why == elect.ErrResigned.Error() && !got[0].Ended.IsZero() && got[1].Why == "" && got[1].Ended.IsZero()
		})
	},
}, {
	ID: "G10.asked", Title: "who is asked to resign hands over",
	Text:  "A leader under Run is asked to resign: the next in line leads soon, the old leader stands at the end of the line again, and the later leader is not asked.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		ra := runs(t, a, t.Ctx, false)
		first := ra.works(t, t.Soon())
		rb := runs(t, b, t.Ctx, false)
		t.Eventually(t.Soon(), "the second stands in line", func() bool { return len(a.Members()) == 2 })
		if _, err := t.Client().Elect().AskToResign(t.Ctx, nil); err != nil {
			t.Fatalf("AskToResign: %v", err)
		}
		second := rb.works(t, t.Soon())
		if second.Token() <= first.Token() {
			t.Fatalf("the token went from %d to %d", first.Token(), second.Token())
		}
		t.Eventually(t.Soon(), "the old leader stands in line again", func() bool { return len(b.Members()) == 2 })
		t.Always(t.TTL/2, "the later leader resigned too", func() bool { return second.Check() == nil })
	},
}}
