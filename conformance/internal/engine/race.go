package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
)

// A Term is a term in a race. A race has a Term only when it is certain that the term began.
type Term struct {
	Who    string
	Client *Client // nil for a candidate in a process of its own
	Token  uint64
	Resign func() // makes the candidate resign; it may be called more than once

	over  bool
	cause error // why it is over; nil if the candidate resigned, or is in another process
}

// A Race is an election whose candidates campaign again after each term. [Trial.Judged] says how
// its history is judged.
type Race struct {
	t      *Trial
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	terms  []*Term
	excuse func(c *Client, err error) bool
}

// NewRace returns a race without candidates.
func (t *Trial) NewRace() *Race {
	r := &Race{t: t}
	r.ctx, r.cancel = context.WithCancel(t.Ctx)
	return r
}

// Race starts a race of the clients. Each leads for hold, or as long as it can if hold is 0.
func (t *Trial) Race(cs []*Client, hold time.Duration) *Race {
	r := t.NewRace()
	for _, c := range cs {
		r.Enter(c, Manner{Hold: hold})
	}
	return r
}

// Excuse sets a func that reports whether the campaign of c may fail with err. Without it, only
// campaigns of killed clients may fail.
func (r *Race) Excuse(f func(c *Client, err error) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.excuse = f
}

func (r *Race) excused(c *Client, err error) bool {
	r.mu.Lock()
	f := r.excuse
	r.mu.Unlock()
	return f != nil && f(c, err)
}

// Enter starts a candidate. joined is closed when the candidate has joined the line for the
// first time.
func (r *Race) Enter(c *Client, m Manner) (joined <-chan struct{}) {
	stands := make(chan struct{})
	first := sync.OnceFunc(func() { close(stands) })
	e := c.elect(elect.Options{}, func(ev trace.Event) {
		if ev.Kind == trace.Joined {
			first()
		}
	})
	r.done.Add(1)
	r.t.spawn(func() {
		defer r.done.Done()
		for r.ctx.Err() == nil {
			term, err := contest(r.ctx, e)
			if err != nil {
				if r.ctx.Err() == nil && !c.Killed() && !r.excused(c, err) {
					r.t.errorf("%s: Campaign: %v", c.Name, err)
				}
				return
			}
			r.lead(c, m, term)
			term.Resign(context.Background())
		}
	})
	return stands
}

// lead watches over one term until it is over or resigned, and keeps it in r.terms.
func (r *Race) lead(c *Client, m Manner, term election.Term) {
	resigning := make(chan struct{})
	g := &Term{Who: c.Name, Client: c, Token: term.Token(), Resign: sync.OnceFunc(func() { close(resigning) })}
	if m.Hold > 0 {
		defer time.AfterFunc(m.Hold, g.Resign).Stop()
	}
	w := watch{Manner: m, tick: r.t.Tick(), won: func() { r.began(g) }, resign: resigning}
	r.ended(g, c.noter().watchOver(r.ctx, term, w))
}

func (r *Race) began(g *Term) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.terms = append(r.terms, g)
}

func (r *Race) ended(g *Term, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.over, g.cause = true, cause
}

// Leader waits until it is certain that somebody leads with a token larger than above. It
// returns the newest such term.
func (r *Race) Leader(above uint64, d time.Duration) *Term {
	var found *Term
	r.t.Eventually(d, fmt.Sprintf("somebody leads with a token above %d", above), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, g := range slices.Backward(r.terms) {
			if !g.over && g.Token > above {
				found = g
				return true
			}
		}
		return false
	})
	return found
}

// Ends waits until the term is over, and checks that it was lost.
func (r *Race) Ends(g *Term, d time.Duration) {
	r.t.Eventually(d, "the old leader learns of its loss", func() bool { return r.Over(g) })
	if g.Client != nil && !errors.Is(g.cause, elect.ErrLost) {
		r.t.Fatalf("%s: the term with token %d ended with %v; want a LostError", g.Who, g.Token, g.cause)
	}
}

// Over reports whether the term is over.
func (r *Race) Over(g *Term) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return g.over
}

// Count returns how many terms there have been.
func (r *Race) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.terms)
}

// Stop ends the race. It must have had at least two terms.
func (r *Race) Stop() {
	r.End()
	if n := r.Count(); n < 2 {
		r.t.Fatalf("only %d terms: the rule has shown nothing", n)
	}
}

// End makes all candidates resign, and waits until they have.
func (r *Race) End() {
	r.cancel()
	r.done.Wait()
}
