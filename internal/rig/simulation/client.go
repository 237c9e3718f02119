package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

// A client is one process.
type client struct {
	w     *world
	name  string
	slot  int
	mode  Mode
	links []*link         // to those sides that it knows
	b     backend.Backend // what its candidates and observers use
	era   int             // the log has gone back so often before it began
	told  bool            // that the log has gone back, for certain
	ended bool            // it crashed, was closed or restarted

	losses int // messages that were to be lost, and have explained no failure yet
}

// A link is what a process has with one side.
type link struct {
	s           *side
	b           *memory.Backend
	cut, delay  func() // end the faults; nil where there is none
	troubleTill time.Time
}

// troubled reports whether a fault of this client, or of all, may explain what
// happens to it now.
func (c *client) troubled() bool {
	now := time.Now()
	for _, l := range c.links {
		if l.cut != nil || l.delay != nil || !now.After(l.troubleTill) || l.s.pause != nil || !now.After(l.s.pausedTill) {
			return true
		}
	}
	return c.ended
}

// hasLost reports whether a call of this client may have failed because a message of it was lost, some time after the step that
// said so. Each loss explains one failure.
func (c *client) hasLost() bool {
	lost := c.losses > 0
	if lost {
		c.losses--
	}
	return lost
}

// reachable reports whether what a coordinator says now reaches the client at once.
func (c *client) reachable() bool {
	for _, l := range c.links {
		if l.cut != nil || l.delay != nil || l.s.pause != nil {
			return false
		}
	}
	return !c.ended
}

// link returns the client's link with a side; nil where it does not know that.
func (c *client) link(side int) *link {
	for _, l := range c.links {
		if l.s.nth == side%len(c.w.sides) {
			return l
		}
	}
	return nil
}

func (l *link) trouble() { l.troubleTill = time.Now().Add(grace) }

func (l *link) heal() {
	if l.cut == nil {
		return
	}
	l.cut()
	l.cut = nil
	l.trouble()
	l.b.Heal()
}

func (l *link) undelay() {
	if l.delay == nil {
		return
	}
	l.delay()
	l.delay = nil
	l.trouble()
	l.b.Delay(0, 0)
}

// replace puts a new process into a slot.
func (w *world) replace(slot int, mode Mode) *client {
	c := &client{w: w, name: fmt.Sprintf("web-%d", w.processes+1), slot: slot, mode: mode, era: w.era}
	w.processes++
	c.b, c.links = w.connect(c.name, mode, w.flaws.Composite)
	for _, l := range c.links {
		l.b.Drift(rate(w.plan.early(slot)))
	}
	c.b = w.flawed(entrance{c.b})
	w.clients[slot] = c
	return c
}

// rate returns by which factor the coordinator's clock is faster where a TTL of it is so
// much shorter than one of the client's.
func rate(early time.Duration) float64 { return float64(TTL) / float64(TTL-early) }

// connect returns what a process or an operator uses in a mode. composite makes one
// backend of two; where it is nil, package migrate does.
func (w *world) connect(name string, mode Mode, composite func(from, to backend.Backend) backend.Backend) (backend.Backend, []*link) {
	var links []*link
	var subs []backend.Backend
	own := w.actor().nth
	for _, s := range w.sides {
		if s.nth == oldSide && mode == New || s.nth == newSide && mode == Old {
			continue
		}
		b := s.c.Client(name)
		links = append(links, &link{s: s, b: b})
		subs = append(subs, turns{b, own})
	}
	switch {
	case len(subs) == 1:
		return subs[0], links
	case composite != nil:
		return composite(subs[0], subs[1]), links
	}
	return migrate.New(subs[0], subs[1], &migrate.Options{From: urls[oldSide], To: urls[newSide]}), links
}

// flawed returns b with the flaw that was planted.
func (w *world) flawed(b backend.Backend) backend.Backend {
	if w.flaws.Backend != nil {
		return w.flaws.Backend(b)
	}
	return b
}

// lose notes that the process is no more.
func (w *world) lose(cl *client, why string) {
	cl.ended = true
	for _, c := range w.candidates {
		if c.client == cl {
			c.note(history.Ended, errors.New(why))
			c.note(history.Left, nil)
			c.cancel()
		}
	}
	for _, l := range cl.links {
		for _, end := range []func(){l.cut, l.delay} {
			if end != nil {
				end()
			}
		}
	}
}

// close closes the process: what it joined leaves at once where it can be reached.
func (w *world) close(cl *client, why string) {
	w.moment(why, cl.name)
	w.lose(cl, why)
	w.start("closing "+cl.name, func() { _ = cl.b.Close() }) // fails where it is cut off
}

// restart restarts the process in a mode, with its candidates and observers.
func (w *world) restart(old *client, mode Mode) {
	var again []*candidate
	for _, c := range w.candidates {
		if c.client == old && c.ctx.Err() == nil {
			again = append(again, c)
		}
	}
	w.close(old, "restart of the process")
	cl := w.replace(old.slot, mode)
	for _, c := range again {
		w.join(cl, c.e, c.how)
	}
	for _, o := range w.observers {
		if o.client == old {
			w.observe(cl, o.e)
		}
	}
}
