package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/history"
)

// A reign is a term as a race knows it, from when it is certain that it has begun.
type reign struct {
	who    string
	c      *client // nil for a candidate in a process of its own
	token  uint64
	over   bool
	cause  error  // why it is over; nil where the candidate resigned, or is not here
	resign func() // has the candidate resign; it may be called more than once
}

// A race is an election whose candidates come back again and again. Its judge is
// the history of the trial.
type race struct {
	t      *trial
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	// refused, if not nil, reports whether a candidate may give up with that error.
	refused func(c *client, err error) bool

	mu     sync.Mutex
	reigns []*reign
}

func (t *trial) newRace() *race {
	r := &race{t: t}
	r.ctx, r.cancel = context.WithCancel(t.ctx)
	return r
}

// race starts candidates that lead for hold, 0 for as long as they can.
func (t *trial) race(cs []*client, hold time.Duration) *race {
	r := t.newRace()
	for _, c := range cs {
		r.enter(c, watch{}, hold)
	}
	return r
}

// enter starts a candidate. The channel that it returns is closed when the candidate
// stands in line for the first time.
func (r *race) enter(c *client, w watch, hold time.Duration) (joined <-chan struct{}) {
	stands := make(chan struct{})
	first := sync.OnceFunc(func() { close(stands) })
	n := c.noter()
	e := c.elected(elect.Options{}, func(ev elect.Event) {
		n.trace(ev)
		if ev.Kind == elect.Joined {
			first()
		}
	})
	w.tick = r.t.tick()
	r.done.Add(1)
	r.t.spawn(func() {
		defer r.done.Done()
		r.candidate(c, e, n, w, hold)
	})
	return stands
}

func (r *race) candidate(c *client, e election.Election, n *noter, w watch, hold time.Duration) {
	for r.ctx.Err() == nil {
		term, err := contest(r.ctx, e)
		if err != nil {
			if r.ctx.Err() == nil && !c.killed() && (r.refused == nil || !r.refused(c, err)) {
				r.t.errorf("%s: Campaign: %v", c.name, err)
			}
			return
		}
		r.lead(c, n, w, term, hold)
		term.Resign(context.Background())
	}
}

// lead keeps the record of one reign.
func (r *race) lead(c *client, n *noter, w watch, term election.Term, hold time.Duration) {
	resigning := make(chan struct{})
	g := &reign{who: c.name, c: c, token: term.Token(), resign: sync.OnceFunc(func() { close(resigning) })}
	w.resign = resigning
	w.won = func() { r.began(g) }
	if hold > 0 {
		defer time.AfterFunc(hold, g.resign).Stop()
	}
	r.ended(g, n.reigns(r.ctx, term, w))
}

func (r *race) began(g *reign) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reigns = append(r.reigns, g)
}

func (r *race) ended(g *reign, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.over, g.cause = true, cause
}

// leader waits until somebody leads, for certain, with a token above the given one. It
// returns the newest reign.
func (r *race) leader(above uint64, d time.Duration) *reign {
	var found *reign
	r.t.poll(d, fmt.Sprintf("somebody leads with a token above %d", above), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, g := range slices.Backward(r.reigns) {
			if !g.over && g.token > above {
				found = g
				return true
			}
		}
		return false
	})
	return found
}

// ends waits until the reign is over, and checks that it was lost.
func (r *race) ends(g *reign, d time.Duration) {
	r.t.poll(d, "the old leader learns of its loss", func() bool { return r.over(g) })
	if g.c != nil && !errors.Is(g.cause, elect.ErrLost) {
		r.t.fatalf("%s: the term with token %d ended with %v; want a LostError", g.who, g.token, g.cause)
	}
}

func (r *race) over(g *reign) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return g.over
}

// count returns how many reigns there have been.
func (r *race) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.reigns)
}

// stop ends the race: all resign, and the history is judged.
func (r *race) stop(rules history.Rules, forgiven ...history.Rule) {
	r.end()
	if n := r.count(); n < 2 {
		r.t.fatalf("only %d terms: the rule has shown nothing", n)
	}
	r.t.judge(rules, forgiven)
}

// end has all resign, and waits for them.
func (r *race) end() {
	r.cancel()
	r.done.Wait()
}
