package simulation

import (
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
)

// side returns which coordinator the term's member is one of.
func (t *term) side() int {
	if t.c.client.mode == New || strings.HasPrefix(t.Member().Key, "to:") {
		return newSide
	}
	return oldSide
}

// stands reports whether m is the place of the term. A composite has one on each side.
func (t *term) stands(m backend.Member) bool {
	id, _ := owner(m)
	return id == t.c.name && (m.Position == t.at || t.c.client.mode == Both)
}

// lookAtPlace compares what a leader believes with what the coordinator knows: it
// stands first, and its session lasts until its deadline at least; longer than that, by
// the margin, as far as clocks agree.
func (w *world) lookAtPlace(t *term, expires map[spot]time.Time) {
	s, line := w.line(t.c.e)
	if len(line) == 0 || !t.stands(line[0]) {
		w.fail("place", "%s leads with token %d and is not first in line: %v", t.c.name, t.token, line)
		return
	}
	if line[0].Pinned {
		return // sealed: its place outlives its session, and nobody else leads
	}
	if !w.plan.Migrate && w.header(s, t.c.e).Sealed != "" {
		w.fail("seal", "%s leads with token %d, and did not seal the election", t.c.name, t.token)
	}
	until, ok := expires[spot{s.nth, line[0].Position}]
	if !ok {
		w.fail("place", "%s leads with token %d under no session", t.c.name, t.token)
		return
	}
	// While the coordinator stands still, its clocks do, too. A nanosecond, as what a
	// rate makes of a time is rounded.
	if d := t.SessionDeadline().Add(-w.plan.early(t.c.client.slot) - 1); s.pause == nil && d.After(until) {
		w.fail("deadline", "%s believes in a deadline %v later than the coordinator's own", t.c.name, d.Sub(until))
	}
}

// lookCalm looks at a world that had no faults for a while: somebody leads wherever
// somebody stands who may, the line is made of those who believe to stand in it, and
// observers know the truth.
func (w *world) lookCalm() {
	for _, e := range w.elections {
		standing := 0
		for _, c := range w.candidates {
			if c.e == e && c.stands() && w.mayLead(c) {
				standing++
			}
		}
		leaders := 0
		for _, t := range w.terms {
			if t.c.e == e && t.leads() {
				leaders++
			}
		}
		if standing > 0 && leaders == 0 {
			w.fail("stall", "nobody leads %s, %v after the last fault, and %d candidates stand", e.name, Bound(w.plan), standing)
		}
		w.lookAtReadiness(e)
		w.lookAtLines(e)
		w.lookAtMovingObservers(e)
	}
}

// stands reports whether the candidate has not been told to stop, and has not given up.
func (c *candidate) stands() bool {
	return !c.client.ended && !c.stopped && c.ctx.Err() == nil && c.resting == nil
}

// mayLead reports whether the candidate leads when it is its turn.
func (w *world) mayLead(c *candidate) bool {
	if w.plan.Migrate {
		return w.mayLeadMoving(c)
	}
	return !w.isClosed(c.e) && c.unready == nil
}

// lookAtLines looks whether those stand in line who believe so. What is pinned is
// nobody's.
func (w *world) lookAtLines(e *election) {
	believers := make(map[string]uint64)
	for _, c := range w.candidates {
		between := c.position == 0 && w.plan.Migrate && w.mayRejoin(c)
		if c.e == e && c.stands() && !between {
			believers[c.name] = c.position
		}
	}
	found := make(map[string]bool)
	for _, s := range w.sides {
		seen := make(map[string]bool)
		for _, m := range s.c.Members(e.name) {
			id, _ := owner(m)
			position, ok := believers[id]
			found[id] = true
			if m.Pinned {
				continue
			}
			if !ok || seen[id] || position != m.Position && !w.plan.Migrate {
				w.fail("ghost", "in %s stands %v, and candidates believe to stand at %v", e.name, m, believers)
			}
			seen[id] = true
		}
	}
	for name := range believers {
		if !found[name] {
			w.fail("ghost", "%s believes to stand at %d, and does not", name, believers[name])
		}
	}
}

// lookForGhosts looks whether anybody stands in line after all have left; and, once all
// sessions have ended, whether a composite's marks do (see package migrate), which may
// stay until then.
func (w *world) lookForGhosts(suffix string) {
	for _, s := range w.sides {
		for _, e := range w.elections {
			left := slices.DeleteFunc(s.c.Members(e.name+suffix), func(m backend.Member) bool { return m.Pinned })
			if len(left) > 0 {
				w.fail("ghost", "%d members stand in %s after all have left: %v", len(left), e.name, left)
			}
		}
	}
}
