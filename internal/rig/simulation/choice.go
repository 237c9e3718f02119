package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/value"
)

// Candidates of a plan with Choice have priorities and sites, and are ready at times. Operators wish for
// leaders, and pause elections.

// asked is the longest time until a candidate knows that its readiness has ended: package elect asks
// once a second.
const asked = time.Second + time.Millisecond

// rejoin is the longest pause of a candidate that gives way again and again; see package elect.
const rejoin = 30 * time.Second

// wishes is how long the wish of an operator holds.
const wishes = 5 * time.Second

var errNotNow = errors.New("not now")

// choose adds what a candidate says of itself.
func (c *candidate) choose(o *elect.Options) {
	if c.w.plan.Choice {
		o.Priority, o.Site, o.Ready = c.how.Priority, c.how.Site, c.ready
	}
}

func (c *candidate) ready(context.Context) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.unready != nil {
		return errNotNow
	}
	return nil
}

// setReady makes the candidate ready, or not.
func (c *candidate) setReady(ready bool) {
	if c.client.ended || ready == (c.unready == nil) {
		return
	}
	c.changed = time.Now()
	if ready {
		c.unready()
		c.unready = nil
	} else {
		c.unready = c.w.log.Begin("not ready", c.name)
	}
}

// knowsUnready reports whether the candidate has not been ready for so long that it must know, also where it
// asked last before a join that took long.
func (c *candidate) knowsUnready() bool {
	return c.unready != nil && time.Since(c.changed) > asked && time.Since(c.joined) > asked
}

// mayBeUnready reports whether the candidate has reason to say that it is not ready.
func (c *candidate) mayBeUnready() bool {
	return c.unready != nil || !c.changed.IsZero() && time.Since(c.changed) < asked || c.client.troubled()
}

// lookAtReadiness looks, when there have been no faults for a while, whether a leader that is not ready has
// handed over.
func (w *world) lookAtReadiness(e *election) {
	for _, t := range w.terms {
		if t.c.e != e || t.Check() != nil || t.c.unready == nil {
			continue
		}
		for _, c := range w.candidates {
			if c.e == e && c != t.c && c.stands() && c.unready == nil {
				w.fail("ready", "%s leads with token %d and is not ready, and %s stands behind it, ready", t.c.name, t.token, c.name)
			}
		}
	}
}

// pauser returns an operator's handle on an election.
func pauser(b backend.Backend, e *election) *operate.Operator {
	return operate.New(b, e.name, "operator")
}

// halt has an operator pause the election.
func (w *world) halt(e *election) {
	e.asked = true
	w.acts("pausing "+e.name, func(ctx context.Context, b backend.Backend) {
		_, _ = pauser(b, e).Pause(ctx, "for a while") // it may be paused already
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lookWhetherClosed(e)
	})
}

// reopen has an operator resume it.
func (w *world) reopen(e *election) {
	w.acts("resuming "+e.name, func(ctx context.Context, b backend.Backend) {
		_, _ = pauser(b, e).Resume(ctx, nil) // it may not be paused
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lookWhetherClosed(e)
	})
}

// wish has an operator ask the leader to resign in favour of somebody behind it, if there is anybody.
func (w *world) wish(e *election, nth int) {
	if line := w.sides[oldSide].c.Members(e.name); len(line) > 1 {
		w.ask(e, &operate.ResignOptions{To: line[1+nth%(len(line)-1)].Key, Within: wishes})
	}
}

// owner returns the ID of the candidate whose member m is, and what else m says.
func owner(m backend.Member) (id, text string) {
	says := value.Parse(m.Value)
	return says.ID, says.Text
}
