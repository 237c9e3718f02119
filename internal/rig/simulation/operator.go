package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/history"
)

// operatorTimeout is how long an operator waits for a coordinator that stands still.
const operatorTimeout = 5*time.Second + odd

// operate is what operators do: to an election, or to the session of a client.
func (w *world) operate(cl *client, e *election, s Step) {
	c := w.sides[oldSide].c
	switch s.Do {
	case Ask:
		w.ask(e, nil)
	case Fence:
		w.fence(e, s)
	case Remove:
		if m := c.Members(e.name); len(m) > 0 {
			w.remove(e, m[s.Nth%len(m)])
		}
	case Drop:
		w.moment("drop", "")
		for _, m := range c.Members(e.name) {
			w.depose(e, m.Position)
		}
		c.Drop(e.name)
	case Expire:
		w.moment("expire", cl.name)
		for _, info := range c.Sessions() {
			if info.Client != cl.name {
				continue
			}
			for _, m := range info.Members {
				if e := w.election(m.Line); e != nil {
					w.depose(e, m.Position)
				}
			}
		}
		for _, l := range cl.links {
			l.trouble()
			l.b.Expire()
		}
	case Gate:
		w.gate(e)
	case Open:
		w.open(e)
	case Snapshot:
		w.snapshot()
	case Rewind:
		w.rewind()
	case Recover:
		w.recover()
	}
}

func (w *world) election(name string) *election {
	for _, e := range w.elections {
		if e.name == name {
			return e
		}
	}
	return nil
}

// depose notes that an operator is about to take a member away, and returns whose.
func (w *world) depose(e *election, position uint64) (name string) {
	e.deposed[position] = true
	for _, c := range w.candidates {
		if c.e == e && c.position == position && !c.client.ended {
			c.note(history.Deposed, nil)
			return c.name
		}
	}
	return ""
}

// remove removes a member.
func (w *world) remove(e *election, m backend.Member) {
	w.moment("remove", w.depose(e, m.Position))
	w.sides[oldSide].c.Remove(e.name, m.Key)
}

// acts has an operator do something that may fail, where a coordinator stands still or has
// gone back.
func (w *world) acts(what string, f func(ctx context.Context, b backend.Backend)) {
	a, b := w.actor(), w.operator
	w.start(what, func() {
		ctx, cancel := context.WithTimeout(a.ctx, operatorTimeout)
		defer cancel()
		f(ctx, b)
	})
}

// ask has an operator ask the leader to resign.
func (w *world) ask(e *election, o *operate.ResignOptions) {
	e.asked = true
	w.acts("asking "+e.name, func(ctx context.Context, b backend.Backend) {
		l, err := operate.New(b, e.name, "").AskToResign(ctx, o)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			return // nobody leads, or the coordinator stands still
		}
		for _, t := range w.terms {
			if t.c.e == e && t.token == l.Token {
				t.asked = true
			}
		}
	})
}

// fence has an operator raise the fence.
func (w *world) fence(e *election, s Step) {
	newest := uint64(0)
	for _, s := range w.sides {
		newest = max(newest, s.c.Index())
	}
	floor := newest + 1000*uint64(1+s.Nth)
	era := w.era
	w.acts("fencing "+e.name, func(ctx context.Context, b backend.Backend) {
		err := operate.New(b, e.name, "").RaiseFence(ctx, floor)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil && w.era == era {
			w.fenced(e, floor)
		}
	})
}

// fenced notes that the fence has been raised for certain.
func (w *world) fenced(e *election, floor uint64) {
	if floor <= e.floor {
		return
	}
	e.floor = floor
	for _, s := range w.sides {
		e.above[s.nth] = s.c.Index()
	}
}

// elsewhere is where a sealed election has gone, where there is one coordinator.
const elsewhere = "memory:elsewhere"

// seal has a leader pin its member and seal the election, as package migrate does.
func (t *term) seal(ctx context.Context) {
	w, e := t.c.w, t.c.e
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	l, err := t.session.Line(ctx, e.name)
	if err == nil && l.Header.Sealed == "" {
		h := l.Header
		h.Sealed = elsewhere
		_ = t.session.Pin(ctx, t.Member(), h, l.Version) // fails with the term
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookWhetherClosed(e)
}

// gate has an operator pin a member at the end of the line. One that does not come to
// that goes with the operator's session.
func (w *world) gate(e *election) {
	b, _ := w.connect("gatekeeper", Old, nil)
	w.acts("gating "+e.name, func(ctx context.Context, _ backend.Backend) {
		defer b.Close()
		_ = pinGate(ctx, b, e.name)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lookWhetherClosed(e)
	})
}

func pinGate(ctx context.Context, b backend.Backend, election string) error {
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	m, err := s.Join(ctx, election, "gate", "")
	if err != nil {
		return err
	}
	for {
		l, err := s.Line(ctx, election)
		if err != nil {
			return err
		}
		if err := s.Pin(ctx, m.Member, l.Header, l.Version); !errors.Is(err, backend.ErrVersion) {
			return err
		}
	}
}

// open has an operator take gates and the seal away, and restart those who gave up
// because of them.
func (w *world) open(e *election) {
	for _, m := range w.sides[oldSide].c.Members(e.name) {
		if m.Pinned {
			w.remove(e, m)
		}
	}
	w.acts("opening "+e.name, func(ctx context.Context, b backend.Backend) {
		s, err := b.Session(ctx)
		if err == nil {
			err = header.Update(ctx, s, e.name, backend.Member{}, func(h *header.Header) bool {
				was := h.Sealed
				h.Sealed = ""
				return was != ""
			})
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lookWhetherClosed(e)
		if err != nil {
			return
		}
		for _, c := range w.candidates {
			if c.e == e && c.resting != nil && !c.client.ended && c.client.era == w.era {
				close(c.resting)
				c.resting = nil
			}
		}
	})
}

// isClosed reports whether a gate or a seal keeps others from leading.
func (w *world) isClosed(e *election) bool {
	s := w.sides[oldSide]
	line := s.c.Members(e.name)
	return w.header(s, e).Sealed != "" || len(line) > 0 && line[0].Pinned
}

// gated reports whether a gate or a seal stands in any election.
func (w *world) gated() bool {
	if w.plan.Migrate {
		return false
	}
	for _, e := range w.elections {
		if slices.ContainsFunc(w.sides[oldSide].c.Members(e.name), func(m backend.Member) bool { return m.Pinned }) {
			return true
		}
	}
	return false
}

// lookWhetherClosed notes since when that is so.
func (w *world) lookWhetherClosed(e *election) {
	if w.plan.Migrate {
		return
	}
	if w.header(w.sides[oldSide], e).Sealed != "" {
		e.sealed = time.Now()
	}
	switch closed := w.isClosed(e); {
	case closed && e.closed == nil:
		e.closed = w.log.BeginIn("gate or seal", e.name)
	case !closed && e.closed != nil:
		e.closed()
		e.closed = nil
	}
}
