package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/elect"
)

// elect returns the client's handle on the election of the trial, which tells the
// timeline its steps.
func (c *client) elect() *elect.Election { return c.elected(nil) }

func (c *client) elected(trace func(elect.Event)) *elect.Election {
	return elect.New(c, c.t.line, &elect.Options{
		ID:            c.name,
		ResignTimeout: c.t.h.TTL/2 + c.t.h.soon(),
		Trace: func(ev elect.Event) {
			what := ev.Kind.String()
			switch ev.Kind {
			case elect.Elected, elect.Ended:
				what = fmt.Sprintf("%s with token %d", what, ev.Token)
			case elect.Waiting:
				what += " for " + show(ev.Ahead)
			}
			if ev.Err != nil {
				what += ": " + ev.Err.Error()
			}
			c.t.log.add(c.name, "%s", what)
			if trace != nil {
				trace(ev)
			}
		},
	})
}

// stand calls Campaign. The term that it wins is resigned with the trial, if not
// before.
func (c *client) stand(ctx context.Context, e *elect.Election) (*elect.Term, error) {
	term, err := e.Campaign(ctx)
	if err == nil {
		c.t.cleanup(func() { term.Resign(context.Background()) })
	}
	return term, err
}

// campaign wins the election of the trial, which must be possible soon.
func (c *client) campaign() *elect.Term {
	return await(c.t, c.campaigns(c.t.ctx).won, c.t.h.soon(), c.name+": Campaign has not returned")
}

// A standing is a campaign that goes on.
type standing struct {
	c      *client
	joined chan elect.Event // each place that it took in line
	won    chan *elect.Term
	failed chan error
}

// campaigns begins a campaign, and returns when it stands in line.
func (c *client) campaigns(ctx context.Context) *standing {
	st := &standing{c: c, joined: make(chan elect.Event, 100), won: make(chan *elect.Term, 1), failed: make(chan error, 1)}
	e := c.elected(func(ev elect.Event) {
		if ev.Kind == elect.Joined {
			select {
			case st.joined <- ev:
			default:
			}
		}
	})
	c.t.spawn(func() {
		term, err := c.stand(ctx, e)
		if err != nil {
			st.failed <- err
			return
		}
		st.won <- term
	})
	await(c.t, st.joined, c.t.h.soon(), c.name+": Campaign has not joined")
	return st
}

// wins waits until the campaign has won.
func (st *standing) wins(d time.Duration) *elect.Term {
	return await(st.c.t, st.won, d, st.c.name+": the campaign has not won")
}

// A reign is a term as the race knows it. It held for certain from began, when
// Campaign had returned, until last, when the last Check that returned nil was
// about to be called. Both are numbers from one counter, so that no clock and no
// scheduler can make two reigns look as if they overlapped that did not.
type reign struct {
	c           *client
	term        *elect.Term
	token       uint64
	began, last int64
	beganAt     time.Time
	lastAt      time.Time
	over        bool
	cause       error
	resign      func() // has the candidate resign; it may be called once
	resigning   <-chan struct{}
}

// A race is an election whose candidates come back again and again, and a record
// of who led when.
type race struct {
	t      *trial
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	clock  int64
	reigns []*reign
}

// race starts candidates that lead for hold, 0 for as long as they can.
func (t *trial) race(cs []*client, hold time.Duration) *race {
	r := &race{t: t}
	r.ctx, r.cancel = context.WithCancel(t.ctx)
	for _, c := range cs {
		r.done.Add(1)
		t.spawn(func() {
			defer r.done.Done()
			r.candidate(c, hold)
		})
	}
	return r
}

func (r *race) candidate(c *client, hold time.Duration) {
	e := c.elect()
	for r.ctx.Err() == nil {
		term, err := e.Campaign(r.ctx)
		if err != nil {
			if r.ctx.Err() == nil && !c.killed() {
				r.t.errorf("%s: Campaign: %v", c.name, err)
			}
			return
		}
		resigning := make(chan struct{})
		r.lead(&reign{
			c: c, term: term, token: term.Token(),
			resign: func() { close(resigning) }, resigning: resigning,
		}, hold)
		term.Resign(context.Background())
	}
}

// lead keeps the record of one reign.
func (r *race) lead(g *reign, hold time.Duration) {
	r.mu.Lock()
	r.clock++
	g.began, g.beganAt = r.clock, time.Now()
	r.reigns = append(r.reigns, g)
	r.mu.Unlock()
	end := make(<-chan time.Time)
	if hold > 0 {
		timer := time.NewTimer(hold)
		defer timer.Stop()
		end = timer.C
	}
	tick := time.NewTicker(r.t.tick())
	defer tick.Stop()
	for {
		r.mu.Lock()
		r.clock++
		now, at := r.clock, time.Now()
		r.mu.Unlock()
		if err := g.term.Check(); err != nil {
			r.ended(g, err)
			return
		}
		r.mu.Lock()
		g.last, g.lastAt = now, at
		r.mu.Unlock()
		select {
		case <-tick.C:
		case <-g.term.Context().Done():
		case <-end:
			r.ended(g, nil)
			return
		case <-g.resigning:
			r.ended(g, nil)
			return
		case <-r.ctx.Done():
			r.ended(g, nil)
			return
		}
	}
}

func (r *race) ended(g *reign, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g.over, g.cause = true, cause
}

// leader waits until somebody leads, for certain, with a token above the given one.
func (r *race) leader(above uint64, d time.Duration) *reign {
	var found *reign
	r.t.poll(d, fmt.Sprintf("somebody leads with a token above %d", above), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, g := range r.reigns {
			if g.last > 0 && !g.over && g.token > above {
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
	r.t.poll(d, "the old leader learns of its loss", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return g.over
	})
	if !errors.Is(g.cause, elect.ErrLost) {
		r.t.fatalf("%s: the term with token %d ended with %v; want a LostError", g.c.name, g.token, g.cause)
	}
}

// count returns how many reigns there have been.
func (r *race) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.reigns)
}

// stop ends the race and judges it: no two reigns overlapped by more than notice,
// and tokens grew.
func (r *race) stop(notice time.Duration) {
	r.cancel()
	r.done.Wait()
	reigns := slices.DeleteFunc(slices.Clone(r.reigns), func(g *reign) bool { return g.last == 0 })
	slices.SortFunc(reigns, func(a, b *reign) int { return cmp.Compare(a.began, b.began) })
	for i, g := range reigns {
		for _, later := range reigns[i+1:] {
			if g.last > later.began && g.lastAt.Sub(later.beganAt) >= notice {
				r.t.fatalf("two leaders: %s, with token %d, found itself leading %v after %s had won with token %d",
					g.c.name, g.token, g.lastAt.Sub(later.beganAt), later.c.name, later.token)
			}
			if later.token <= g.token {
				r.t.fatalf("the token went from %d (%s) to %d (%s)", g.token, g.c.name, later.token, later.c.name)
			}
		}
	}
	if len(reigns) < 2 {
		r.t.fatalf("only %d terms: the rule has shown nothing", len(reigns))
	}
}
