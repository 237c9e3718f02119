package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/memory"
)

// operatorTimeout is how long an operator waits for a coordinator that stands still.
const operatorTimeout = 5*time.Second + odd

// do takes one step, without waiting for what comes of it.
func (w *world) do(s Step) {
	slot := s.Client % len(w.clients)
	cl, e := w.clients[slot], w.elections[s.Election%len(w.elections)]
	switch s.Do {
	case Cut, CutRequests, CutAnswers:
		if cl.cut != nil { // what healing wakes must not meet the next cut
			w.alone(func() { w.heal(cl) })
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch s.Do {
	case Wait:
	case Join:
		w.join(cl, e, s)
	case Leave:
		if n := len(w.candidates); n > 0 {
			w.candidates[s.Nth%n].cancel()
		}
	case Observe:
		w.observe(cl, e)
	case Put:
		for _, t := range w.terms {
			if t.working {
				select {
				case t.put <- struct{}{}:
				default:
				}
			}
		}
	case Ask:
		w.ask(e)
	case Fence:
		w.fence(e, s)
	case Remove:
		if m := w.c.Members(e.name); len(m) > 0 {
			victim := m[s.Nth%len(m)]
			w.moment("remove", w.depose(e, victim.Position))
			w.c.Remove(e.name, victim.Key)
		}
	case Drop:
		w.moment("drop", "")
		for _, m := range w.c.Members(e.name) {
			w.depose(e, m.Position)
		}
		w.c.Drop(e.name)
	case Expire:
		w.moment("expire", cl.name)
		for _, info := range w.c.Sessions() {
			if info.Client != cl.name {
				continue
			}
			for _, m := range info.Members {
				w.depose(w.election(m.Line), m.Position)
			}
		}
		cl.trouble()
		cl.b.Expire()
	case Crash:
		w.moment("crash", cl.name)
		w.lose(cl, "crashed")
		cl.b.Kill()
		w.replace(slot)
	case Close:
		w.moment("close", cl.name)
		w.lose(cl, "closed")
		w.start("closing "+cl.name, func() { _ = cl.b.Close() }) // fails where it is cut off
		w.replace(slot)
	case Cut:
		cl.cut = w.log.Begin("cut", cl.name)
		cl.b.Cut()
	case CutRequests:
		cl.cut = w.log.Begin("cut requests", cl.name)
		cl.b.CutRequests()
	case CutAnswers:
		cl.cut = w.log.Begin("cut answers", cl.name)
		cl.b.CutAnswers()
	case Heal:
		w.heal(cl)
	case Delay:
		w.undelay(cl)
		cl.delay = w.log.Begin("delay", cl.name)
		cl.b.Delay(s.Request, s.Answer)
	case Disconnect:
		w.moment("disconnect", cl.name)
		cl.b.Disconnect()
	case LoseRequest:
		w.moment("lose request", cl.name)
		cl.b.LoseRequest()
	case LoseAnswer:
		w.moment("lose answer", cl.name)
		cl.b.LoseAnswer()
	case LoseJoin:
		w.moment("lose join", cl.name)
		cl.b.LoseAnswer(memory.OpJoin)
	case LosePut:
		w.moment("lose put", cl.name)
		cl.b.LoseAnswer(memory.OpPut)
	case Pause:
		if w.pause == nil {
			w.pause = w.log.Begin("pause", "")
			w.c.Pause()
		}
	case Resume:
		w.resume()
	case Restart:
		w.moment("restart", "")
		w.c.Restart()
	default:
		panic("simulation: no such act: " + string(s.Do))
	}
}

func (w *world) election(name string) *election {
	for _, e := range w.elections {
		if e.name == name {
			return e
		}
	}
	panic("simulation: no such election: " + name)
}

// moment notes a fault that takes no time.
func (w *world) moment(kind, target string) { w.log.Begin(kind, target)() }

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
	for _, end := range []func(){cl.cut, cl.delay} {
		if end != nil {
			end()
		}
	}
}

func (c *client) trouble() { c.troubleTill = time.Now().Add(grace) }

func (w *world) heal(cl *client) {
	if cl.cut == nil {
		return
	}
	cl.cut()
	cl.cut = nil
	cl.trouble()
	cl.b.Heal()
}

func (w *world) undelay(cl *client) {
	if cl.delay == nil {
		return
	}
	cl.delay()
	cl.delay = nil
	cl.trouble()
	cl.b.Delay(0, 0)
}

func (w *world) resume() {
	if w.pause == nil {
		return
	}
	w.pause()
	w.pause = nil
	w.pausedTill = time.Now().Add(grace)
	w.c.Resume()
}

// ask has an operator ask the leader to resign.
func (w *world) ask(e *election) {
	e.asked = true
	a := w.actor()
	w.start("asking "+e.name, func() {
		ctx, cancel := context.WithTimeout(a.ctx, operatorTimeout)
		defer cancel()
		l, err := elect.New(a.on(w.operator), e.name, nil).AskToResign(ctx)
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
	floor := w.c.Index() + 1000*uint64(1+s.Nth)
	a := w.actor()
	w.start("fencing "+e.name, func() {
		ctx, cancel := context.WithTimeout(a.ctx, operatorTimeout)
		defer cancel()
		err := elect.New(a.on(w.operator), e.name, nil).RaiseFence(ctx, floor)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil && floor > e.floor {
			e.floor, e.above = floor, w.c.Index()
		}
	})
}
