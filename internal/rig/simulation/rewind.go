package simulation

import (
	"context"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
)

// notice is how long a candidate may take to give up after its process was told that the
// log went back: it waits before it asks for its next session, and its work may linger
// before that.
const notice = MaxLinger + putTimeout + resignTimeout + 2*time.Second

// rewinds is what the world knows of a coordinator whose log goes back.
type rewinds struct {
	kept   func() // restores what an operator remembered; nil where there is nothing
	keptAt uint64 // its index
	at     []time.Duration
	to     uint64 // the index that the log last went back to
	end    func() // ends the fault that lasts until an operator has raised the fences; nil where there is none
}

// open reports whether the log has gone back and no operator has done what is to be done.
func (r *rewinds) open() bool { return r.end != nil }

// snapshot has an operator remember what the coordinator has.
func (w *world) snapshot() {
	c := w.sides[oldSide].c
	w.rewinds.kept, w.rewinds.keptAt = c.Snapshot(), c.Index()
}

// rewind takes the coordinator back. Each client that can be reached is told at once.
func (w *world) rewind() {
	r, c := &w.rewinds, w.sides[oldSide].c
	for _, e := range w.elections {
		w.lookAtPuts(e)
		clear(e.puts)
		clear(e.deposed)
		e.floor = 0
	}
	r.at, r.to = append(r.at, w.now()), 0
	if r.kept != nil {
		r.to = r.keptAt
	}
	if r.end == nil {
		r.end = w.log.Begin("rewind", "")
	}
	w.era++
	w.setStale()
	if r.kept != nil {
		r.kept()
	} else {
		c.Reset()
	}
	w.newOperator()
}

// setStale notes of whom nothing can be said until their processes are restarted: those
// who cannot be told, as they cannot be reached or have no session at that moment. The log may be as far again as they have seen it
// when they come back.
func (w *world) setStale() {
	sessions := w.sides[oldSide].c.Sessions()
	for _, c := range w.candidates {
		if c.client.ended {
			continue
		}
		has := slices.ContainsFunc(sessions, func(s memory.SessionInfo) bool { return s.Client == c.client.name })
		if !c.client.reachable() || !has {
			c.stale = true
		} else if c.position > w.rewinds.to {
			c.client.told = true
		}
	}
	for _, t := range w.terms {
		t.stale = t.stale || !t.c.client.reachable()
	}
	for _, o := range w.observers {
		o.stale = o.stale || !o.client.reachable()
	}
}

// recover has an operator do what the message of backend.ErrReset asks for: restart every
// process that was there before, and raise the fences above every token.
func (w *world) recover() {
	if !w.rewinds.open() {
		return
	}
	for _, cl := range slices.Clone(w.clients) {
		if cl.era < w.era {
			w.restart(cl, cl.mode)
		}
	}
	tops := make(map[*election]uint64)
	for _, t := range w.terms {
		tops[t.c.e] = max(tops[t.c.e], t.token)
	}
	era := w.era
	w.acts("recovering", func(ctx context.Context, b backend.Backend) {
		for _, e := range w.elections {
			if tops[e] == 0 {
				continue
			}
			if err := operate.New(b, e.name, "").RaiseFence(ctx, tops[e]); err != nil {
				return
			}
			w.mu.Lock()
			if w.era == era {
				w.fenced(e, tops[e])
			}
			w.mu.Unlock()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.era == era && w.rewinds.open() {
			w.rewinds.end()
			w.rewinds.end = nil
		}
	})
}

// lookTold looks whether those who were told that the log went back have given up.
func (w *world) lookTold() {
	for _, c := range w.candidates {
		if c.client.told && c.stands() {
			w.fail("reset", "%s goes on, and the log of its coordinator went back", c.name)
		}
	}
}
