//go:build linux

package worker

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/store"
)

// A candidate is the worker in one election.
type candidate struct {
	w      *worker
	name   string // of the election
	store  *store.Store
	acts   actFile
	resign chan struct{} // holds one wish
}

func newCandidate(w *worker, election string, s *store.Store, acts actFile) *candidate {
	return &candidate{w: w, name: election, store: s, acts: acts, resign: make(chan struct{}, 1)}
}

// failedError is what needs somebody to act.
type failedError struct{ error }

func (e *failedError) Unwrap() error { return e.error }

// askToResign makes the candidate give up its term, if it leads.
func (c *candidate) askToResign() {
	select {
	case c.resign <- struct{}{}:
	default: // it has been asked already
	}
}

// run stands in line and leads, again and again, until ctx ends.
func (c *candidate) run(ctx context.Context) error {
	e := elect.New(c.w.b, c.name, &elect.Options{ID: c.w.ID, Logger: c.w.logger, Trace: c.trace})
	for {
		t, err := e.Campaign(ctx)
		if ctx.Err() != nil && err != nil {
			return nil
		}
		if err != nil {
			return &failedError{fmt.Errorf("%s cannot stand in line for %s: %w", c.w.ID, c.name, err)}
		}
		c.lead(ctx, t)
	}
}

// trace notes what becomes of the place in line.
func (c *candidate) trace(ev trace.Event) {
	switch ev.Kind {
	case trace.Joined:
		c.note(history.Event{Kind: history.Joined, Position: ev.Member.Position})
	case trace.Left:
		c.note(history.Event{Kind: history.Left, Position: ev.Member.Position, Why: text(ev.Err)})
	}
}

func (c *candidate) note(e history.Event) {
	e.Election, e.Candidate = c.name, c.w.ID
	c.w.notes.Note(e)
}

// lead works until the term ends, or is to end, and leaves the line.
func (c *candidate) lead(ctx context.Context, t *elect.Term) {
	select {
	case <-c.resign: // meant an earlier term
	default:
	}
	r := &reign{c: c, t: t}
	if r.act() == nil { // else the process was paused, and is told only now
		// In a goroutine of its own: the work may be in a write when the term ends.
		worked := make(chan struct{})
		go func() {
			defer close(worked)
			(&work{candidate: c, t: t}).run(ctx)
		}()
		r.watch(worked)
		<-worked
	}
	// What goes wrong here the trace has noted: the member goes with its session.
	_ = t.Resign(ctx)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
