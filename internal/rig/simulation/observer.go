package simulation

import (
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
)

// An observer follows one election.
type observer struct {
	name   string
	client *client
	e      *election
	stale  bool // the log went back, and it may not know
	seen   bool
	last   elect.Leader
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

func (o *observer) see(l elect.Leader, err error) {
	w := o.client.w
	switch {
	case err != nil:
		if w.ctx.Err() == nil && !o.client.ended && o.client.era == w.era {
			w.fail("observer", "%s has given up: %v", o.name, err)
		}
		return
	case o.stale:
	case !l.Vacant() && l.Token < o.newest:
		w.fail("observer", "%s went back from token %d to %d", o.name, o.newest, l.Token)
	case o.seen && l == o.last:
		w.fail("observer", "%s was told the same twice: %+v", o.name, l)
	}
	o.seen, o.last, o.newest = true, l, max(o.newest, l.Token)
}

// lookAtObservers compares what observers were told last with what the coordinator
// knows. Where no fault is in the way, they know it at the same instant; but not whether
// an election has moved, which those of a composite find at their slow re-check. One whose
// process was there before the log went back has given up, or may be stale.
func (w *world) lookAtObservers(e *election) {
	for _, o := range w.observers {
		if o.e != e || o.client.mode == Both || o.client.troubled() || o.client.era < w.era {
			continue
		}
		s := w.sides[oldSide]
		if o.client.mode == New {
			s = w.sides[newSide]
		}
		o.compare(w.leader(s, s.c.Members(e.name), ""))
	}
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
		o.compare(w.leader(s, line, tag))
	}
}

func (o *observer) compare(truth elect.Leader) {
	if w := o.client.w; w.ctx.Err() == nil && (!o.seen || o.last != truth) {
		w.fail("observer", "%s sees %+v (%v), and the truth in %s is %+v", o.name, o.last, o.seen, o.e.name, truth)
	}
}

// leader returns the leader as an observer of a side is to see it.
func (w *world) leader(s *side, line []backend.Member, tag string) elect.Leader {
	if len(line) == 0 {
		return elect.Leader{}
	}
	h, err := backend.ParseHeader(s.c.Record(line[0].Line).Value)
	if err != nil {
		w.fail("observer", "the record of %s: %v", line[0].Line, err)
	}
	token := h.Fence + line[0].Position
	l := elect.Leader{
		Key: tag + line[0].Key, Token: token, Acknowledged: h.Acknowledged == token, Pinned: line[0].Pinned,
		Paused: line[0].Pinned && line[0].Position == h.Choice.Gate,
	}
	l.ID, l.Value = owner(line[0])
	for _, c := range w.candidates {
		if c.name == l.ID {
			l.Priority, l.Site = c.how.Priority, c.how.Site
		}
	}
	return l
}
