package simulation

import (
	"fmt"
	"iter"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/value"
)

// An observer follows one election.
type observer struct {
	name   string
	client *client
	e      *election
	stale  bool // the log went back, and it may not know
	seen   bool
	last   elect.State
	newest uint64
}

// observe starts an observer, which goes on until the end or as long as its
// process lives.
func (w *world) observe(cl *client, e *election) {
	o := &observer{name: fmt.Sprintf("%s/observer-%d", cl.name, len(w.observers)+1), client: cl, e: e}
	w.observers = append(w.observers, o)
	a := w.actor()
	w.start(o.name, func() {
		for l, err := range elect.New(cl.b, e.name, nil).Observe(a.ctx) {
			w.mu.Lock()
			o.see(l, err)
			w.mu.Unlock()
		}
	})
}

func (o *observer) see(l elect.State, err error) {
	w := o.client.w
	switch {
	case err != nil:
		if w.ctx.Err() == nil && !o.client.ended && o.client.era == w.era {
			w.fail("observer", "%s has given up: %v", o.name, err)
		}
		return
	case o.stale:
	case !l.Vacant() && l.Leader.Token < o.newest:
		w.fail("observer", "%s went back from token %d to %d", o.name, o.newest, l.Leader.Token)
	case o.seen && l == o.last:
		w.fail("observer", "%s was told the same twice: %+v", o.name, l)
	}
	o.seen, o.last, o.newest = true, l, max(o.newest, l.Leader.Token)
}

// lookAtObservers compares what observers were told last with what the coordinator
// knows. Where no fault is in the way, they know it at the same instant; but not whether
// an election has moved, which those of a composite find at their slow re-check. One whose
// process was there before the log went back has given up, or may be stale.
func (w *world) lookAtObservers(e *election) {
	for o, truth := range w.observed(e) {
		o.compare(truth)
	}
}

// observed yields the observers that lookAtObservers looks at, each with what it is to see.
func (w *world) observed(e *election) iter.Seq2[*observer, elect.State] {
	return func(yield func(*observer, elect.State) bool) {
		for _, o := range w.observers {
			if o.e != e || o.client.mode == Both || o.client.troubled() || o.client.era < w.era {
				continue
			}
			s := w.sides[oldSide]
			if o.client.mode == New {
				s = w.sides[newSide]
			}
			if !yield(o, w.state(s, e.name, s.c.Members(e.name), "")) {
				return
			}
		}
	}
}

// behind reports whether an observer has not heard of something yet.
func (w *world) behind(e *election) bool {
	for o, truth := range w.observed(e) {
		if o.differs(truth) {
			return true
		}
	}
	return false
}

// lookAtMovingObservers compares what those of composites were told last with the truth;
// but not while composites take places and give them back, as somebody of the new side
// keeps them from leading. One in the process of such a place sees that a moment later.
func (w *world) lookAtMovingObservers(e *election) {
	if w.home(e).nth == oldSide && w.standing(e, New) {
		return
	}
	for _, o := range w.observers {
		if o.e != e || o.client.mode != Both || o.client.troubled() {
			continue
		}
		s, line := w.line(e)
		tag := ""
		if s.nth == newSide {
			tag = "to:"
		}
		o.compare(w.state(s, e.name, line, tag))
	}
}

// compare fails if the observer was not told the truth last.
func (o *observer) compare(truth elect.State) {
	if o.differs(truth) {
		o.client.w.fail("observer", "%s sees %+v (%v), and the truth in %s is %+v", o.name, o.last, o.seen, o.e.name, truth)
	}
}

// differs reports whether the observer was told something other than the truth last. An operator who deletes an election deletes the fence with it, which the
// first in line restores before it leads. Until then its token is smaller than what was seen before, and the observer waits for it.
func (o *observer) differs(truth elect.State) bool {
	if !truth.Vacant() && truth.Leader.Token < o.newest {
		return false
	}
	return o.client.w.ctx.Err() == nil && (!o.seen || o.last != truth)
}

// state returns how an election stands, as an observer of a side is to see it.
func (w *world) state(s *side, name string, line []backend.Member, tag string) elect.State {
	var h header.Header
	if r := s.c.Record(name); r.Version != backend.Absent {
		var err error
		if h, err = header.Parse(r.Value); err != nil {
			w.fail("observer", "the record of %s: %v", name, err)
		}
	}
	if len(line) == 0 {
		return elect.State{MovedTo: h.Sealed}
	}
	token := h.Fence + line[0].Position
	first := elect.Candidate{Key: tag + line[0].Key, Token: token, Position: line[0].Position, Pinned: line[0].Pinned, Shared: line[0].Shared}
	first.ID, first.Value = owner(line[0])
	for _, c := range w.candidates {
		if c.name == first.ID {
			first.Priority, first.Site = c.how.Priority, c.how.Site
		}
	}
	switch {
	case first.Pinned:
		return elect.State{Gate: first, Paused: line[0].Position == h.Choice.Gate, MovedTo: h.Sealed}
	case h.Sealed != "":
		return elect.State{MovedTo: h.Sealed}
	case value.Parse(line[0].Value).Gate: // it is about to be pinned
		return elect.State{}
	}
	return elect.State{Leader: elect.Leader{Candidate: first, Acknowledged: h.Acknowledged == token}}
}
