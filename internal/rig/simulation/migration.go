package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate"
)

// move has somebody at a shell take a step of a migration, who may give up in the middle.
func (w *world) move(e *election, s Step) {
	if s.Patience == 0 {
		s.Patience = operatorTimeout
	}
	b, links := w.connect("mover", Both, nil)
	for _, l := range links {
		l.b.Delay(s.Request, s.Answer)
	}
	m := b.(*migrate.Backend)
	steps := map[Act]func(context.Context, string) (migrate.Status, error){
		Begin: m.Begin, Cutover: m.Cutover, Abort: m.Abort, Finish: m.Finish,
	}
	a := w.actor()
	w.start(string(s.Do)+" of "+e.name, func() {
		defer m.Close()
		ctx, cancel := context.WithTimeout(a.ctx, s.Patience)
		defer cancel()
		_, err := steps[s.Do](ctx, e.name)
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case err == nil, ctx.Err() != nil, errors.Is(err, migrate.ErrRefused), errors.Is(err, migrate.ErrNotBegun):
		case errors.Is(err, backend.ErrUnavailable), errors.Is(err, backend.ErrSessionEnded):
		default:
			w.fail("migration", "%s of %s: %v", s.Do, e.name, err)
		}
	})
}

// tidy has an operator finish what was left half done: a cutover behind the seal, and an
// abort.
func (w *world) tidy(e *election) {
	switch h := w.header(w.sides[newSide], e); {
	case w.home(e).nth == newSide && h.Migration.Gate != 0:
		w.move(e, Step{Do: Cutover})
	case h.Migration.Step == "aborting", h.Migration.Step == "aborted" && h.Migration.Gate != 0:
		w.move(e, Step{Do: Abort, Patience: 2 * TTL})
	}
}

// roll restarts a process in a mode. Nobody is to start one with the new side alone before
// the migrations have begun: package migrate says so.
func (w *world) roll(cl *client, mode Mode) {
	if mode == New {
		for _, e := range w.elections {
			if w.header(w.sides[newSide], e).Migration.Step == "" {
				mode = Both
			}
		}
	}
	w.restart(cl, mode)
}

// hasBegun reports whether the new side's record says anything of a migration.
func (w *world) hasBegun(e *election) bool {
	return w.header(w.sides[newSide], e).Migration.Step != ""
}

// lookAtMigration looks whether a migration goes forward.
func (w *world) lookAtMigration(e *election) {
	if e.begun.IsZero() && w.hasBegun(e) {
		e.begun = time.Now()
		w.wake(e)
	}
	w.begunAgain(e)
	moved := w.home(e).nth == newSide
	if e.moved && !moved {
		w.fail("migration", "the seal of %s has gone from the old coordinator", e.name)
	}
	e.moved = moved
}

// begunAgain reports whether more than one migration has begun. Then a candidate that leads by
// the old side alone, because a migration was aborted, joins again.
func (w *world) begunAgain(e *election) bool {
	if id := w.header(w.sides[newSide], e).Migration.ID; id != e.id {
		e.id, e.again = id, e.id != ""
	}
	return e.again
}

// wake restarts those who gave up as no migration had begun.
func (w *world) wake(e *election) {
	for _, c := range w.candidates {
		if c.e == e && c.resting != nil && c.client.mode == Both {
			close(c.resting)
			c.resting = nil
		}
	}
}

// mayRefuse reports whether a candidate may give up because of where the election is.
func (w *world) mayRefuse(c *candidate, err error) bool {
	switch c.client.mode {
	case Old:
		return errors.Is(err, backend.ErrSealed) && w.home(c.e).nth == newSide
	case New: // the migration was aborted
		return errors.Is(err, backend.ErrSealed) && w.aborted(c.e)
	}
	// It may have asked before, and been answered late.
	return errors.Is(err, migrate.ErrNotBegun) && (c.e.begun.IsZero() || time.Since(c.e.begun) < MaxDelay || c.client.troubled())
}

func (w *world) aborted(e *election) bool { return w.header(w.sides[newSide], e).Sealed != "" }

// mayRejoin reports whether a composite may have given its place up: the election has
// moved, or there was no place to be had on the new side in time.
func (w *world) mayRejoin(c *candidate) bool {
	return c.client.mode == Both && (w.home(c.e).nth == newSide || w.standing(c.e, New) || w.left(c.e, New) || c.client.troubled())
}

// left reports whether the member of a candidate in the mode stands on the new coordinator, also where its process has crashed.
func (w *world) left(e *election, mode Mode) bool {
	return slices.ContainsFunc(w.sides[newSide].c.Members(e.name), func(m backend.Member) bool {
		id, _ := owner(m)
		return slices.ContainsFunc(w.candidates, func(c *candidate) bool { return c.name == id && c.client.mode == mode })
	})
}

// mayLeadMoving reports whether a candidate leads when it is its turn.
func (w *world) mayLeadMoving(c *candidate) bool {
	mode := c.client.mode
	switch {
	case w.home(c.e).nth == newSide:
		return mode != Old
	case !w.hasBegun(c.e):
		return mode == Old
	case w.aborted(c.e):
		return mode != New
	case w.standing(c.e, New):
		// It stands on the new side behind the gate, and so keeps composites from their
		// places, who keep others from theirs on the old side for as long as they try.
		return mode == Old && !w.standing(c.e, Both)
	}
	return mode != New
}

// standing reports whether a candidate in the mode stands.
func (w *world) standing(e *election, mode Mode) bool {
	for _, c := range w.candidates {
		if c.e == e && c.stands() && c.client.mode == mode {
			return true
		}
	}
	return false
}
