package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/history"
)

// elect returns the client's handle on the election of the trial, which tells the
// timeline its steps, and the history where the candidate stands.
func (c *client) elect() election.Election { return c.elected(c.t.line, c.noter(c.t.line).trace) }

// election returns the client's handle on an election.
func (c *client) election(name string, o *elect.Options) election.Election {
	return c.t.h.elections(c, name, o)
}

func (c *client) elected(line string, trace func(elect.Event)) election.Election {
	return c.election(line, &elect.Options{
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
			trace(ev)
		},
	})
}

// noter notes in the history what the client does as a candidate of an election.
func (c *client) noter(line string) *noter {
	return &noter{log: c.t.notes, zero: c.t.began, election: line, id: c.name}
}

// stand calls Campaign. The term that it wins is resigned with the trial, if not
// before.
func (c *client) stand(ctx context.Context, e election.Election) (election.Term, error) {
	term, err := e.Campaign(ctx)
	if err == nil {
		n := c.noter(c.t.line)
		n.note(history.Won, term.Member(), term.Token(), nil)
		context.AfterFunc(term.Context(), func() {
			n.note(history.Ended, term.Member(), term.Token(), context.Cause(term.Context()))
		})
		c.t.cleanup(func() { term.Resign(context.Background()) })
	}
	return term, err
}

// campaign wins the election of the trial, which must be possible soon.
func (c *client) campaign() election.Term {
	return await(c.t, c.campaigns(c.t.ctx).won, c.t.h.soon(), c.name+": Campaign has not returned")
}

// A standing is a campaign that goes on.
type standing struct {
	c      *client
	joined chan elect.Event // each place that it took in line
	won    chan election.Term
	failed chan error
}

// campaigns begins a campaign, and returns when it stands in line.
func (c *client) campaigns(ctx context.Context) *standing {
	st := &standing{c: c, joined: make(chan elect.Event, 100), won: make(chan election.Term, 1), failed: make(chan error, 1)}
	n := c.noter(c.t.line)
	e := c.elected(c.t.line, func(ev elect.Event) {
		n.trace(ev)
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
func (st *standing) wins(d time.Duration) election.Term {
	return await(st.c.t, st.won, d, st.c.name+": the campaign has not won")
}
