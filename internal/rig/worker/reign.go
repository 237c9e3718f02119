//go:build linux

package worker

import (
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/history"
)

// askPause is the time between two acts of a leader: short beside all that is done to it.
const askPause = time.Millisecond

// A reign is a term as its candidate knows it for certain. To ask whether it still leads,
// and to be told so, is an act. It is dated before the asking: the term lasted then,
// whenever the answer came and whenever the note was taken. So no pause and no busy
// machine can make two terms look as if they overlapped that did not, and nothing has to
// be forgiven.
type reign struct {
	c *candidate
	t *elect.Term
	// last is the newest act, and the deadline of the term as known just after it: not
	// earlier than at the act. An act after its deadline is the last whose deadline counts.
	last Act
}

// act asks once. It returns why the term is over, and nil while it lasts.
func (r *reign) act() error {
	at := max(1, r.c.w.clock())
	if err := r.t.Check(); err != nil {
		return err
	}
	first := r.last.At == 0
	before := r.c.w.clock()
	if d := r.t.Deadline(); !d.IsZero() && !r.last.late() {
		left := time.Until(d) // first: a process that is paused now makes the deadline too late, and not too early
		// Deadline reads one clock for the present and another for what is left. It is too early by
		// what passes in between, which is no more than all of this takes.
		after := r.c.w.clock()
		r.last.Deadline = max(1, after+left+(after-before))
	}
	r.last.Token, r.last.At = r.t.Token(), at
	r.c.acts.write(r.last) // first: a process that is killed has won no term without an act
	if first {
		e := r.event(history.Won)
		e.At = at
		r.c.note(e)
	}
	return nil
}

// watch acts again and again until the term is over or the work is, and notes the end.
// The first act has been made.
func (r *reign) watch(worked <-chan struct{}) {
	pause := time.NewTicker(askPause)
	defer pause.Stop()
	for leaving := false; !leaving; {
		select {
		case <-pause.C:
		case <-r.t.Context().Done():
		case <-worked:
			leaving = true
		}
		if err := r.act(); err != nil {
			r.end(history.CheckFailed, err)
			return
		}
	}
	r.end(history.Resigned, nil)
}

func (r *reign) end(k history.Kind, why error) {
	e := r.event(k)
	e.Led, e.Deadline, e.Why = r.last.At, r.last.Deadline, text(why)
	r.c.note(e)
}

func (r *reign) event(k history.Kind) history.Event {
	return history.Event{Kind: k, Position: r.t.Member().Position, Token: r.t.Token()}
}
