package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/history"
)

// elect returns the client's handle on its election, which tells the
// timeline its steps, and the history where the candidate stands.
func (c *client) elect() election.Election { return c.elected(elect.Options{}, c.noter().trace) }

// election returns the client's handle on an election.
func (c *client) election(name string, o *elect.Options) election.Election {
	return c.t.h.elections(c, name, o)
}

// elected returns the client's handle on its election with these options, which tells the
// timeline its steps, and trace.
func (c *client) elected(o elect.Options, trace func(elect.Event)) election.Election {
	o.ID = c.name
	if o.ResignTimeout == 0 {
		o.ResignTimeout = c.t.h.TTL/2 + c.t.h.soon()
	}
	o.Trace = func(ev elect.Event) {
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
		trace(ev)
	}
	return c.election(c.line, &o)
}

// noter notes in the history what the client does as a candidate.
func (c *client) noter() *noter {
	return &noter{log: c.t.notes, zero: c.t.began, election: c.line, id: c.name}
}

// stand calls Campaign. The term that it wins is resigned with the trial, if not
// before.
func (c *client) stand(ctx context.Context, e election.Election) (election.Term, error) {
	term, err := contest(ctx, e)
	if err == nil {
		n := c.noter()
		n.note(history.Won, term.Member(), term.Token(), nil)
		context.AfterFunc(term.Context(), func() {
			n.note(history.Ended, term.Member(), term.Token(), context.Cause(term.Context()))
		})
		c.t.cleanup(func() { term.Resign(context.Background()) })
	}
	return term, err
}

// campaign wins the client's election, which must be possible soon.
func (c *client) campaign() election.Term {
	return await(c.t, c.campaigns(c.t.ctx).won, c.t.h.soon(), c.name+": Campaign has not returned")
}

// A standing is a campaign that goes on.
type standing struct {
	c       *client
	joined  chan elect.Event // each place that it took in line
	waiting chan elect.Event // each whom it has begun to wait for
	won     chan election.Term
	failed  chan error
}

// campaigns begins a campaign, and returns when it stands in line.
func (c *client) campaigns(ctx context.Context) *standing {
	return c.campaignsWith(ctx, elect.Options{})
}

// campaignsWith is campaigns, for a candidate with these options.
func (c *client) campaignsWith(ctx context.Context, o elect.Options) *standing {
	st := &standing{
		c: c, joined: make(chan elect.Event, 100), waiting: make(chan elect.Event, 100),
		won: make(chan election.Term, 1), failed: make(chan error, 1),
	}
	n := c.noter()
	e := c.elected(o, func(ev elect.Event) {
		n.trace(ev)
		var steps chan elect.Event
		switch ev.Kind {
		case elect.Joined:
			steps = st.joined
		case elect.Waiting:
			steps = st.waiting
		}
		select {
		case steps <- ev:
		default:
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

// waits returns when the campaign has begun to wait for another member, and the
// coordinator knows of that.
func (st *standing) waits() {
	await(st.c.t, st.waiting, st.c.t.h.soon(), st.c.name+": the campaign does not wait behind anybody")
	st.c.t.pass(st.c.t.h.TTL/50, "in which the watch is set up")
}

// wins waits until the campaign has won.
func (st *standing) wins(d time.Duration) election.Term {
	return await(st.c.t, st.won, d, st.c.name+": the campaign has not won")
}

// contest calls Campaign, and returns an error where that says neither that it has won
// nor why it has not.
func contest(ctx context.Context, e election.Election) (election.Term, error) {
	term, err := e.Campaign(ctx)
	if term == nil && err == nil {
		return nil, errors.New("neither a term nor an error")
	}
	return term, err
}
