package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence/notes"
)

// A Violation is a law that did not hold.
type Violation struct {
	Law        string
	At         time.Duration
	Text       string
	Election   string   // empty where it is of none, or not known
	Candidates []string // whom it is about
}

func (v Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.Law, v.At, v.Text) }

// fail notes a violation, about whomever the arguments name. The world is locked.
func (w *world) fail(law, format string, args ...any) {
	v := Violation{Law: law, At: w.now(), Text: fmt.Sprintf(format, args...)}
	for _, arg := range args {
		for _, e := range w.elections {
			if arg == e.name {
				v.Election = e.name
			}
		}
		for _, c := range w.candidates {
			if arg == c.name {
				v.Election, v.Candidates = c.e.name, append(v.Candidates, c.name)
			}
		}
	}
	w.broken = append(w.broken, v)
}

// failed is fail where the world is not locked.
func (w *world) failed(law, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(law, format, args...)
}

func (w *world) violations() []Violation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.broken)
}

// leads reports whether the term is one that nobody may lead beside. An operator
// may have taken its place away, and a process that is no more does not lead.
func (t *term) leads() bool {
	if t.c.client.ended || t.c.e.deposed[t.at] || t.stale {
		return false
	}
	err := t.Check()
	if err == nil {
		return true
	}
	// The candidate was told to stop, and its work is not done yet: the place must be
	// kept as long as that is possible.
	return t.working && !errors.Is(err, elect.ErrLost) &&
		t.session.Err() == nil && time.Now().Before(t.Deadline())
}

// lookAtWin looks at a term that begins: nobody else leads, and its token is larger
// than all before.
func (w *world) lookAtWin(t *term) {
	e := t.c.e
	if t.token < t.at {
		w.fail("token", "%s won with token %d at position %d", t.c.name, t.token, t.at)
	}
	if above := e.above[t.side()]; t.at > above && e.floor > 0 && t.token <= e.floor {
		w.fail("token", "%s joined after the fence was raised to %d, and won with token %d", t.c.name, e.floor, t.token)
	}
	if t.c.knowsUnready() {
		w.fail("ready", "%s won with token %d, and has not been ready for %v", t.c.name, t.token, time.Since(t.c.changed))
	}
	if e.deposed[t.at] || t.stale {
		return // it won on an answer that was on its way when its place was taken away
	}
	for _, o := range w.terms {
		if o.c.e != e || o.c.client.ended && !o.leads() && e.deposed[o.at] {
			continue
		}
		if o.leads() {
			w.fail("one leader", "%s won with token %d while %s led with token %d", t.c.name, t.token, o.c.name, o.token)
		}
		if !e.deposed[o.at] && !o.stale && o.era == t.era && o.token >= t.token {
			w.fail("token", "%s won with token %d after %s had won with %d", t.c.name, t.token, o.c.name, o.token)
		}
	}
}

// lookAtEnd looks at a term whose context has ended: in time, and for a reason.
func (w *world) lookAtEnd(t *term) {
	if t.c.client.ended {
		return
	}
	cause := context.Cause(t.Context())
	w.log.Note(history.Event{
		Kind: history.Ended, Election: t.c.e.name, Candidate: t.c.name, Position: w.noted(t.at), Token: t.token,
		Deadline: t.Deadline().Sub(w.began), Why: text(cause),
	})
	if errors.Is(cause, elect.ErrLost) {
		w.explain(t.c, t.at, cause)
	}
}

// explain looks for what the world did to a candidate that lost its place.
func (w *world) explain(c *candidate, position uint64, err error) {
	var ok bool
	switch {
	case c.client.ended || c.e.deposed[position] || c.stale:
		ok = true
	case c.client.era < w.era: // its place may have gone with the log
		ok = w.rewinds.open()
	case w.plan.Migrate && errors.Is(err, backend.ErrNotMember):
		ok = w.mayRejoin(c)
	case w.plan.Migrate && errors.Is(err, elect.ErrRemoved):
		ok = c.client.mode == Both && w.begunAgain(c.e)
	case errors.Is(err, elect.ErrRemoved), errors.Is(err, backend.ErrNotMember):
	case errors.Is(err, elect.ErrAsked):
		ok = c.e.asked
	case errors.Is(err, elect.ErrNotReady):
		ok = c.mayBeUnready()
	default:
		ok = c.client.troubled() || errors.Is(err, backend.ErrUnavailable) && c.client.hasLost()
	}
	if !ok {
		w.fail("lost for no reason", "%s at position %d: %v", c.name, position, err)
	}
}

// look looks at all terms at an instant at which nothing moves.
func (w *world) look() {
	expires := w.expires()
	for _, e := range w.elections {
		w.lookWhetherClosed(e)
		w.lookAt(e, expires)
		w.lookAtObservers(e)
		if w.plan.Migrate {
			w.lookAtMigration(e)
		}
	}
}

func (w *world) lookAt(e *election, expires map[spot]time.Time) {
	var leader *term
	for _, t := range w.terms {
		if t.c.e != e || t.c.client.ended {
			continue
		}
		told := t.Context().Err() != nil
		err := t.Check()
		if err == nil && t.over {
			w.fail("one leader", "the term of %s with token %d has revived", t.c.name, t.token)
		}
		t.over = t.over || err != nil
		if err != nil && !told {
			w.fail("told", "%s was not told that its term with token %d is over: %v", t.c.name, t.token, err)
		}
		if err == nil && !time.Now().Before(t.Deadline()) {
			w.fail("deadline", "%s leads with token %d at %v after its deadline", t.c.name, t.token, time.Since(t.Deadline()))
		}
		if err == nil && (e.deposed[t.at] || t.asked) && !t.stale && !t.c.client.troubled() {
			w.fail("told", "%s leads with token %d, and was removed or asked to resign", t.c.name, t.token)
		}
		if !t.leads() {
			continue
		}
		if leader != nil {
			w.fail("one leader", "%s (token %d) and %s (token %d) both lead", leader.c.name, leader.token, t.c.name, t.token)
		}
		leader = t
		w.lookAtPlace(t, expires)
	}
	for _, s := range w.sides {
		w.lookAtRecord(e, s)
	}
}

// lookAtRecord notes what the leaders' record says on one side. What it said before the
// log went back does not count.
func (w *world) lookAtRecord(e *election, s *side) {
	r := s.c.Record(e.record())
	if r.Version == backend.Absent || uint64(r.Version) <= w.rewinds.to {
		return
	}
	token, err := strconv.ParseUint(string(r.Value), 10, 64)
	if err != nil {
		w.fail("guarded put", "the record of %s is %q", e.name, r.Value)
	}
	e.puts[put{s.nth, r.Version}] = token
}

// lookBack looks at the whole of what happened.
func (w *world) lookBack() {
	for _, e := range w.elections {
		w.lookAtPuts(e)
	}
	// What is from before the log went back is not compared with what is from after it.
	h, from := w.log.History(), time.Duration(0)
	for _, to := range append(w.rewinds.at, w.now()+1) {
		for _, v := range notes.Between(h, from, to).Check(w.rules()) {
			w.broken = append(w.broken, Violation{"history: " + string(v.Rule), v.From, v.Text, v.Election, v.Candidates})
		}
		from = to
	}
}

// rules are those for the history. A candidate that no fault touches may have to
// wait for the end of a session in front of it, and for one whose messages are slow.
// While an election moves, what a candidate waits for may be another one's mode.
func (w *world) rules() history.Rules {
	if w.plan.Migrate {
		return history.Rules{}
	}
	vacancy := Bound(w.plan)
	if w.plan.Choice { // each of those in front may be slow to see who stands behind it, and to leave
		vacancy += time.Duration(w.plan.Clients) * 8 * MaxDelay
	}
	return history.Rules{Vacancy: vacancy}
}

// lookAtPuts looks whether writes landed in the order of tokens.
func (w *world) lookAtPuts(e *election) {
	for _, s := range w.sides {
		last := uint64(0)
		for _, v := range versions(e.puts, s.nth) {
			token := e.puts[put{s.nth, v}]
			if token < last {
				w.fail("guarded put", "in %s a write with token %d landed after one with %d", e.name, token, last)
			}
			last = max(last, token)
		}
	}
}

func versions(puts map[put]uint64, side int) []backend.Version {
	var out []backend.Version
	for p := range puts {
		if p.side == side {
			out = append(out, p.version)
		}
	}
	slices.Sort(out)
	return out
}
