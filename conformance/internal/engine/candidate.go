package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/history"
)

// Elect returns the client's handle on its election. The timeline gets each step of the handle, and
// the history gets when it joins and leaves.
func (c *Client) Elect() election.Election { return c.elect(elect.Options{}, func(trace.Event) {}) }

// elect is Elect with these options. It calls also for each step.
func (c *Client) elect(o elect.Options, also func(trace.Event)) election.Election {
	n := c.noter()
	o.ID = c.Name
	o.ResignTimeout = cmp.Or(o.ResignTimeout, c.t.TTL/2+c.t.Soon())
	o.Trace = func(ev trace.Event) {
		what := ev.Kind.String()
		switch ev.Kind {
		case trace.Elected, trace.Ended:
			what = fmt.Sprintf("%s with token %d", what, ev.Token)
		case trace.Waiting:
			what += " for " + Show(ev.Ahead)
		}
		if ev.Err != nil {
			what += ": " + ev.Err.Error()
		}
		c.t.Log(c.Name, "%s", what)
		n.trace(ev)
		also(ev)
	}
	return c.t.Elections(c, c.Election, &o)
}

// noter returns a noter for what the client does as a candidate.
func (c *Client) noter() *noter {
	return &noter{log: c.t.notes, zero: c.t.began, election: c.Election, id: c.Name}
}

// Campaign calls [elect.Election.Campaign]. The term that it wins is resigned at the end of the
// trial, if not before.
func (c *Client) Campaign(ctx context.Context) (election.Term, error) {
	return c.CampaignWith(ctx, elect.Options{})
}

// CampaignWith is Campaign with options of the election.
func (c *Client) CampaignWith(ctx context.Context, o elect.Options) (election.Term, error) {
	return c.campaign(ctx, c.elect(o, func(trace.Event) {}))
}

func (c *Client) campaign(ctx context.Context, e election.Election) (election.Term, error) {
	term, err := contest(ctx, e)
	if err == nil {
		n := c.noter()
		n.note(history.Won, term.Member(), term.Token(), nil)
		context.AfterFunc(term.Context(), func() {
			n.note(history.Ended, term.Member(), term.Token(), context.Cause(term.Context()))
		})
		c.t.Cleanup(func() { term.Resign(context.Background()) })
	}
	return term, err
}

// contest calls Campaign. It returns an error if Campaign returns neither a term nor an error.
func contest(ctx context.Context, e election.Election) (election.Term, error) {
	term, err := e.Campaign(ctx)
	if term == nil && err == nil {
		return nil, errors.New("neither a term nor an error")
	}
	return term, err
}

// Leads wins the client's election. It must do so soon.
func (c *Client) Leads() election.Term { return c.Stand(c.t.Ctx).Wins(c.t.Soon()) }

// A Candidate is a client that campaigns in the background.
type Candidate struct {
	Name    string
	t       *Trial
	joined  chan trace.Event // a value for each time that it joined the line
	waiting chan trace.Event // a value for each member that it began to wait for
	won     chan election.Term
	failed  chan error
}

// Stand begins a campaign, and returns when the client stands in line.
func (c *Client) Stand(ctx context.Context) *Candidate { return c.StandWith(ctx, elect.Options{}) }

// StandWith is Stand with options of the election.
func (c *Client) StandWith(ctx context.Context, o elect.Options) *Candidate {
	st := &Candidate{
		Name: c.Name, t: c.t, joined: make(chan trace.Event, 100), waiting: make(chan trace.Event, 100),
		won: make(chan election.Term, 1), failed: make(chan error, 1),
	}
	e := c.elect(o, func(ev trace.Event) {
		var steps chan trace.Event
		switch ev.Kind {
		case trace.Joined:
			steps = st.joined
		case trace.Waiting:
			steps = st.waiting
		}
		select {
		case steps <- ev:
		default:
		}
	})
	c.t.spawn(func() {
		term, err := c.campaign(ctx, e)
		if err != nil {
			st.failed <- err
			return
		}
		st.won <- term
	})
	st.Joins(c.t.Soon())
	return st
}

// Joins waits until the candidate joins the line. Each call waits for one join.
func (st *Candidate) Joins(d time.Duration) {
	Await(st.t, st.joined, d, st.Name+": Campaign has not joined")
}

// Waits waits until the candidate has begun to wait for another member, and a little longer,
// so that the coordinator knows of it.
func (st *Candidate) Waits() {
	Await(st.t, st.waiting, st.t.Soon(), st.Name+": the campaign does not wait behind anybody")
	st.t.Pass(st.t.TTL/50, "in which the watch is set up")
}

// Wins waits until the candidate has won.
func (st *Candidate) Wins(d time.Duration) election.Term {
	return Await(st.t, st.won, d, st.Name+": the campaign has not won")
}

// Won returns the channel on which the term arrives.
func (st *Candidate) Won() <-chan election.Term { return st.won }

// Leading reports whether the candidate has won.
func (st *Candidate) Leading() bool { return Arrived(st.won) }

// Undecided reports whether the campaign has neither won nor failed.
func (st *Candidate) Undecided() bool { return !st.Leading() && !Arrived(st.failed) }

// GivesUp waits until the campaign has failed with one of the errors.
func (st *Candidate) GivesUp(d time.Duration, want ...error) {
	what := st.Name + ": Campaign"
	st.t.Want(what, Await(st.t, st.failed, d, what+" has not returned"), want...)
}
