package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/history"
)

// An observer keeps what Observe yields.
type observer struct {
	t    *trial
	mu   sync.Mutex
	seen []elect.Leader
	end  chan error
}

// observes begins to observe the election of the trial.
func (c *client) observes(ctx context.Context) *observer {
	o := &observer{t: c.t, end: make(chan error, 1)}
	e := c.elect()
	c.t.spawn(func() {
		for l, err := range e.Observe(ctx) {
			if err != nil {
				o.end <- err
				return
			}
			c.t.log.add(c.name, "observes %s", showLeader(l))
			o.mu.Lock()
			o.seen = append(o.seen, l)
			o.mu.Unlock()
		}
		o.end <- nil
	})
	return o
}

func showLeader(l elect.Leader) string {
	if l.Vacant() {
		return "nobody"
	}
	return fmt.Sprintf("%s with token %d, acknowledged %v", l.ID, l.Token, l.Acknowledged)
}

// sees waits until what was yielded last is as wanted, for as long as the slow re-check
// may take.
func (o *observer) sees(what string, want func(elect.Leader) bool) {
	o.seesWithin(o.t.h.recheck()+o.t.h.soon(), what, want)
}

func (o *observer) seesWithin(d time.Duration, what string, want func(elect.Leader) bool) {
	o.t.poll(d, "the observer sees "+what, func() bool {
		if returned(o.end) {
			o.t.fatalf("the observer is to see %s, and the observation has ended: %v", what, <-o.end)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.seen) > 0 && want(o.seen[len(o.seen)-1])
	})
}

func (o *observer) leads(term election.Term) {
	o.sees(fmt.Sprintf("the leader with token %d", term.Token()), func(l elect.Leader) bool { return l.Token == term.Token() && l.Key == term.Member().Key })
}

// ordered checks that tokens never fell and that no entry was yielded twice in a row.
func (o *observer) ordered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	newest := uint64(0)
	for i, l := range o.seen {
		if !l.Vacant() && l.Token < newest {
			o.t.fatalf("the observer saw token %d after %d", l.Token, newest)
		}
		if i > 0 && l == o.seen[i-1] {
			o.t.fatalf("the observer was told twice of %s", showLeader(l))
		}
		newest = max(newest, l.Token)
	}
}

var observeRules = []Rule{{
	ID:    "G10.sees",
	Title: "observers see leader, acknowledgement and vacancy",
	Text:  "An observer of an election that was never used sees nobody soon; then, each after its slow re-check at the latest, the leader not acknowledged, the same acknowledged (where there are records), the next leader, and nobody. It is told of each once.",
	check: func(t *trial) {
		a, b, watcher := t.client(), t.client(), t.client()
		o := watcher.observes(t.ctx)
		o.seesWithin(t.h.soon(), "nobody", elect.Leader.Vacant)
		term := a.campaign()
		o.leads(term)
		o.sees("no acknowledgement", func(l elect.Leader) bool { return !l.Acknowledged && l.ID == "a" })
		if t.h.can(Records) {
			if err := term.Acknowledge(t.ctx); err != nil {
				t.fatalf("Acknowledge: %v", err)
			}
			o.sees("the acknowledgement", func(l elect.Leader) bool { return l.Acknowledged && l.Token == term.Token() })
		}
		next := b.campaigns(t.ctx)
		term.Resign(t.ctx)
		second := next.wins(t.h.soon())
		o.leads(second)
		o.sees("no acknowledgement", func(l elect.Leader) bool { return !l.Acknowledged && l.ID == "b" })
		second.Resign(t.ctx)
		o.sees("nobody", elect.Leader.Vacant)
		o.ordered()
	},
}, {
	ID:    "G10.churn",
	Title: "observers never go back, and end on the truth",
	Text:  "While four candidates lead in turn for thirty terms, two observers see tokens that never fall, though they may skip; when the churn is over and one leads, both see it.",
	check: func(t *trial) {
		cs := t.opened(4)
		watchers := []*observer{t.client().observes(t.ctx), t.client().observes(t.ctx)}
		r := t.race(cs, t.tick())
		t.poll(t.h.limit(), "thirty terms come to pass", func() bool { return r.count() >= 30 })
		r.stop(history.Rules{})
		term := cs[0].campaign()
		for _, o := range watchers {
			o.leads(term)
			o.ordered()
		}
	},
}, {
	ID:    "G10.expired",
	Title: "observers outlive their session",
	Text:  "The coordinator ends the session of an observer, and then of the leader. The observer is told of no error, and sees the next leader after its slow re-check at the latest.",
	Needs: []Fault{Expire},
	check: func(t *trial) {
		a, b, watcher := t.client(), t.client(), t.client()
		term := a.campaign()
		o := watcher.observes(t.ctx)
		o.leads(term)
		watcher.expire()
		next := b.campaigns(t.ctx)
		a.expire()
		o.leads(next.wins(t.h.crash()))
		if returned(o.end) {
			t.fatalf("the observation ended: %v", <-o.end)
		}
		o.ordered()
	},
}, {
	ID:    "G10.ends",
	Title: "an observation ends with its context",
	Text:  "When its context ends, Observe ends soon with the cause, whether somebody leads or nobody does; a consumer that breaks off leaves no goroutine.",
	check: func(t *trial) {
		a, watcher := t.client(), t.client()
		for range 2 {
			ctx, cancel := context.WithCancelCause(t.ctx)
			o := watcher.observes(ctx)
			o.sees("who leads", func(elect.Leader) bool { return true })
			cancel(errCancelled)
			if err := await(t, o.end, t.h.soon(), "Observe has not ended with its context"); !errors.Is(err, errCancelled) {
				t.fatalf("Observe ended with %v; want the cause of its context", err)
			}
			if len(a.members()) == 0 {
				a.campaign()
			}
		}
		left := t.labelled(func() {
			for _, err := range watcher.elect().Observe(t.ctx) {
				if err != nil {
					t.fatalf("Observe: %v", err)
				}
				break
			}
		})
		t.nobodyLeft(left, "goroutines are left of an observation")
	},
}, {
	ID:    "G10.line",
	Title: "Line and Leader tell the truth",
	Text:  "Line shows all candidates in order with ID, token and key, and Leader the first; both are empty where nobody stands, and AskToResign then fails with ErrNoLeader.",
	check: func(t *trial) {
		cs := t.opened(3)
		e := cs[2].elect()
		if l, err := e.Leader(t.ctx); err != nil || !l.Vacant() {
			t.fatalf("Leader of an empty election is %+v, %v", l, err)
		}
		if _, err := e.AskToResign(t.ctx); !errors.Is(err, elect.ErrNoLeader) {
			t.fatalf("AskToResign of an empty election returned %v; want ErrNoLeader", err)
		}
		for i, c := range cs {
			if st := c.campaigns(t.ctx); i == 0 {
				st.wins(t.h.soon()) // a token may grow until it is that of a leader
			}
		}
		line, err := e.Line(t.ctx)
		if err != nil || len(line) != 3 {
			t.fatalf("Line is %+v, %v; want three candidates", line, err)
		}
		for i, l := range line {
			if l.ID != cs[i].name || i > 0 && l.Token <= line[i-1].Token || l.Key == "" {
				t.fatalf("Line shows %+v in place %d; want %s", l, i, cs[i].name)
			}
		}
		if l, err := e.Leader(t.ctx); err != nil || l != line[0] {
			t.fatalf("Leader is %+v, %v; want %+v", l, err, line[0])
		}
	},
}, {
	ID:    "G10.asked",
	Title: "who is asked to resign hands over",
	Text:  "A leader under Run is asked to resign: the next in line leads soon, the old leader stands at the end of the line again, and the later leader is not asked.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		ra := a.runs(t.ctx)
		first := await(t, ra.began, t.h.soon(), "Run has not begun its work")
		rb := b.runs(t.ctx)
		t.poll(t.h.soon(), "the second stands in line", func() bool { return len(a.members()) == 2 })
		if _, err := t.client().elect().AskToResign(t.ctx); err != nil {
			t.fatalf("AskToResign: %v", err)
		}
		second := await(t, rb.began, t.h.soon(), "the next in line does not lead")
		if second.Token() <= first.Token() {
			t.fatalf("the token went from %d to %d", first.Token(), second.Token())
		}
		t.poll(t.h.soon(), "the old leader stands in line again", func() bool { return len(b.members()) == 2 })
		t.steady(t.h.TTL/2, "the later leader resigned too", func() bool { return second.Check() == nil })
	},
}}
