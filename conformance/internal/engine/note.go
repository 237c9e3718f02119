package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/history"
)

// A noter notes in a history what one candidate of an election does.
type noter struct {
	log      *history.Recorder
	zero     time.Time // of the log's clock
	election string
	id       string
}

func (n *noter) note(k history.Kind, m backend.Member, token uint64, why error) {
	n.log.Note(history.Event{
		Kind: k, Election: n.election, Candidate: n.id, Position: m.Position, Token: token, Why: text(why),
	})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// trace notes when the candidate joins and leaves.
func (n *noter) trace(ev trace.Event) {
	switch ev.Kind {
	case trace.Joined:
		n.note(history.Joined, ev.Member, 0, nil)
	case trace.Left:
		n.note(history.Left, ev.Member, 0, ev.Err)
	}
}

// A Manner says how a candidate leads.
type Manner struct {
	// Hold is how long it leads before it resigns. If it is 0, it leads as long as it can.
	Hold time.Duration
	// Heeds says that it looks only at the term's context, as an application does whose work
	// stops with the context. Otherwise it calls Check.
	Heeds bool
	// Margin is how much later than Term.Deadline the candidate may notice the end of a term.
	Margin time.Duration
}

// A watch says how a candidate watches over its term.
type watch struct {
	Manner
	// tick is the time between two looks.
	tick time.Duration
	// suspended, if not nil, says whether the machine was suspended. After that the candidate
	// looks only at the term's context, because a call of Check would itself end the term.
	suspended *atomic.Bool
	// won is called when it is certain that the candidate leads.
	won func()
	// resign is closed when the candidate is to resign.
	resign <-chan struct{}
}

// watchOver watches over a term. When the term is over, it returns why. When the candidate
// should resign, or ctx ends, it returns nil. The term that it notes is certain: it begins just
// before the first question with the answer that the candidate leads, and ends just before the last
// such question. So no clock and no scheduler can make two terms seem to overlap that did not.
func (n *noter) watchOver(ctx context.Context, term election.Term, w watch) error {
	tick := time.NewTicker(w.tick)
	defer tick.Stop()
	e := history.Event{Election: n.election, Candidate: n.id, Position: term.Member().Position, Token: term.Token()}
	end := func(k history.Kind, at time.Duration, why error) error {
		if e.Led > 0 {
			e.Kind, e.At, e.Why = k, at, text(why)
			n.log.Note(e)
		}
		return why
	}
	for leaving := false; ; {
		if w.suspended != nil && w.suspended.Load() {
			select {
			case <-term.Context().Done():
				return end(history.Ended, 0, context.Cause(term.Context()))
			case <-ctx.Done():
				return end(history.Resigned, e.Led, nil)
			}
		}
		at := max(1, n.log.Now())
		d := term.Deadline() // read before the check: if the machine is suspended in between, the deadline has passed
		if w.Heeds {
			if err := context.Cause(term.Context()); err != nil {
				return end(history.Ended, 0, err)
			}
		} else if err := term.Check(); err != nil {
			return end(history.CheckFailed, 0, err)
		}
		if !d.IsZero() {
			e.Deadline = max(1, d.Add(w.Margin).Sub(n.zero))
		}
		if e.Led == 0 {
			won := e
			won.At, won.Kind, won.Deadline = at, history.Won, 0
			n.log.Note(won)
			w.won()
		}
		e.Led = at
		if leaving {
			return end(history.Resigned, at, nil)
		}
		select {
		case <-tick.C:
		case <-term.Context().Done():
		case <-w.resign:
			leaving = true
		case <-ctx.Done():
			leaving = true
		}
	}
}
