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
	if t.c.client.ended || t.c.e.deposed[t.at] {
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
	if t.at > e.above && e.above > 0 && t.token <= e.floor {
		w.fail("token", "%s joined after the fence was raised to %d, and won with token %d", t.c.name, e.floor, t.token)
	}
	if e.deposed[t.at] {
		return // it won on an answer that was on its way when its place was taken away
	}
	for _, o := range w.terms {
		if o.c.e != e || o.c.client.ended && !o.leads() && e.deposed[o.at] {
			continue
		}
		if o.leads() {
			w.fail("one leader", "%s won with token %d while %s led with token %d", t.c.name, t.token, o.c.name, o.token)
		}
		if !e.deposed[o.at] && o.token >= t.token {
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
		Kind: history.Ended, Election: t.c.e.name, Candidate: t.c.name, Position: t.at, Token: t.token,
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
	case c.client.ended || c.e.deposed[position]:
		ok = true
	case errors.Is(err, elect.ErrRemoved), errors.Is(err, backend.ErrNotMember):
	case errors.Is(err, elect.ErrAsked):
		ok = c.e.asked
	default:
		ok = c.client.troubled()
	}
	if !ok {
		w.fail("lost for no reason", "%s at position %d: %v", c.name, position, err)
	}
}

// look looks at all terms at an instant at which nothing moves.
func (w *world) look() {
	expires := make(map[uint64]time.Time)
	for _, s := range w.c.Sessions() {
		for _, m := range s.Members {
			expires[m.Position] = s.Expires
		}
	}
	for _, e := range w.elections {
		w.lookAt(e, expires)
		w.lookAtObservers(e)
	}
}

func (w *world) lookAt(e *election, expires map[uint64]time.Time) {
	line := w.c.Members(e.name)
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
		if err == nil && (e.deposed[t.at] || t.asked) && !t.c.client.troubled() {
			w.fail("told", "%s leads with token %d, and was removed or asked to resign", t.c.name, t.token)
		}
		if !t.leads() {
			continue
		}
		if leader != nil {
			w.fail("one leader", "%s (token %d) and %s (token %d) both lead", leader.c.name, leader.token, t.c.name, t.token)
		}
		leader = t
		w.lookAtPlace(t, line, expires)
	}
	if r := w.c.Record(e.record()); r.Version != backend.Absent {
		token, err := strconv.ParseUint(string(r.Value), 10, 64)
		if err != nil {
			w.fail("guarded put", "the record of %s is %q", e.name, r.Value)
		}
		e.puts[r.Version] = token
	}
}

// lookAtPlace compares what a leader believes with what the coordinator knows: it
// stands first, and its session lasts beyond its deadline.
func (w *world) lookAtPlace(t *term, line []backend.Member, expires map[uint64]time.Time) {
	if len(line) == 0 || line[0].Position != t.at {
		w.fail("place", "%s leads with token %d and is not first in line: %v", t.c.name, t.token, line)
		return
	}
	until, ok := expires[t.at]
	if !ok {
		w.fail("place", "%s leads with token %d under no session", t.c.name, t.token)
		return
	}
	// While the coordinator stands still, its clocks do, too.
	if d := t.Deadline().Add(margin); w.pause == nil && d.After(until) {
		w.fail("deadline", "%s believes in a deadline %v later than the coordinator's own", t.c.name, d.Sub(until))
	}
}

// lookCalm looks at a world that had no faults for a while: somebody leads wherever
// somebody stands, the line is made of those who believe to stand in it, and
// observers know the truth.
func (w *world) lookCalm() {
	for _, e := range w.elections {
		var want []uint64
		standing := 0
		for _, c := range w.candidates {
			if c.e != e || c.client.ended || c.stopped || c.ctx.Err() != nil {
				continue
			}
			standing++
			want = append(want, c.position)
		}
		slices.Sort(want)
		line := w.c.Members(e.name)
		var got []uint64
		for _, m := range line {
			got = append(got, m.Position)
		}
		if !slices.Equal(got, want) {
			w.fail("ghost", "in %s stand %v, and candidates believe to stand at %v", e.name, line, want)
		}
		leaders := 0
		for _, t := range w.terms {
			if t.c.e == e && t.leads() {
				leaders++
			}
		}
		if standing > 0 && leaders == 0 {
			w.fail("stall", "nobody leads %s, %v after the last fault, and %d candidates stand", e.name, Bound(w.plan.Slack), standing)
		}
	}
}

// lookAtObservers compares what observers were told last with what the coordinator
// knows. Where no fault is in the way, they know it at the same instant.
func (w *world) lookAtObservers(e *election) {
	var truth elect.Leader
	if line := w.c.Members(e.name); len(line) > 0 {
		h, err := backend.ParseHeader(w.c.Record(e.name).Value)
		if err != nil {
			w.fail("observer", "the record of %s: %v", e.name, err)
			return
		}
		token := h.Fence + line[0].Position
		truth = elect.Leader{ID: line[0].Value, Key: line[0].Key, Token: token, Acknowledged: h.Acknowledged == token}
	}
	for _, o := range w.observers {
		if o.e == e && !o.client.troubled() && w.ctx.Err() == nil && (!o.seen || o.last != truth) {
			w.fail("observer", "%s sees %+v (%v), and the truth in %s is %+v", o.name, o.last, o.seen, e.name, truth)
		}
	}
}

// lookBack looks at the whole of what happened.
func (w *world) lookBack() {
	for _, e := range w.elections {
		last := uint64(0)
		for _, v := range sortedVersions(e.puts) {
			if e.puts[v] < last {
				w.fail("guarded put", "in %s a write with token %d landed after one with %d", e.name, e.puts[v], last)
			}
			last = max(last, e.puts[v])
		}
	}
	for _, v := range w.log.History().Check(w.rules()) {
		w.broken = append(w.broken, Violation{"history: " + string(v.Rule), v.From, v.Text, v.Election, v.Candidates})
	}
}

// rules are those for the history. A candidate that no fault touches may have to
// wait for the end of a session in front of it, and for one whose messages are slow.
func (w *world) rules() history.Rules {
	return history.Rules{Vacancy: Bound(w.plan.Slack)}
}

func sortedVersions(puts map[backend.Version]uint64) []backend.Version {
	var out []backend.Version
	for v := range puts {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}
