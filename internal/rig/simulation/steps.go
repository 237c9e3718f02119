package simulation

import "github.com/succession-dev/succession/memory"

// do takes one step, without waiting for what comes of it.
func (w *world) do(s Step) {
	cl, e := w.clients[s.Client%len(w.clients)], w.elections[s.Election%len(w.elections)]
	switch s.Do {
	case Cut, CutRequests, CutAnswers:
		if l := cl.link(s.Side); l != nil && l.cut != nil { // what healing wakes must not meet the next cut
			w.alone(l.heal)
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
	case Put, Seal:
		for _, t := range w.terms {
			if t.working && (s.Do == Put || t.c.e == e) {
				select {
				case t.todo <- s.Do:
				default:
				}
			}
		}
	case Crash:
		w.moment("crash", cl.name)
		w.lose(cl, "crashed")
		for _, l := range cl.links {
			l.b.Kill()
		}
		w.replace(cl.slot, cl.mode)
	case Close:
		w.close(cl, "closed")
		w.replace(cl.slot, cl.mode)
	case Roll:
		w.roll(cl, s.Mode)
	case Begin, Cutover, Abort, Finish:
		w.move(e, s)
	case Ask, Fence, Remove, Drop, Expire, Gate, Open, Snapshot, Rewind, Recover:
		w.operate(cl, e, s)
	case NotReady, Ready:
		if n := len(w.candidates); n > 0 {
			w.candidates[s.Nth%n].setReady(s.Do == Ready)
		}
	case Wish:
		w.wish(e, s.Nth)
	case Halt:
		w.halt(e)
	case Reopen:
		w.reopen(e)
	case Pause, Resume, Restart:
		w.upset(w.sides[s.Side%len(w.sides)], s.Do)
	default:
		if l := cl.link(s.Side); l != nil {
			w.disturb(cl, l, s)
		}
	}
}

// disturb does something to a link.
func (w *world) disturb(cl *client, l *link, s Step) {
	switch s.Do {
	case Cut:
		l.cut = w.log.Begin("cut", cl.name)
		l.b.Cut()
	case CutRequests:
		l.cut = w.log.Begin("cut requests", cl.name)
		l.b.CutRequests()
	case CutAnswers:
		l.cut = w.log.Begin("cut answers", cl.name)
		l.b.CutAnswers()
	case Heal:
		l.heal()
	case Delay:
		l.undelay()
		l.delay = w.log.Begin("delay", cl.name)
		l.b.Delay(s.Request, s.Answer)
	case Lag:
		w.moment("lag", cl.name)
		l.b.Lag(s.Answer)
	case Disconnect:
		w.moment("disconnect", cl.name)
		l.b.Disconnect()
	case LoseRequest:
		w.moment("lose request", cl.name)
		cl.losses++
		l.b.LoseRequest()
	case LoseAnswer:
		w.moment("lose answer", cl.name)
		cl.losses++
		l.b.LoseAnswer()
	case LoseJoin:
		w.moment("lose join", cl.name)
		cl.losses++
		l.b.LoseAnswer(memory.OpJoin)
	case LosePut:
		w.moment("lose put", cl.name)
		cl.losses++
		l.b.LoseAnswer(memory.OpPut, memory.OpPin)
	default:
		panic("simulation: no such act: " + string(s.Do))
	}
}

// upset does something to a coordinator.
func (w *world) upset(s *side, do Act) {
	switch do {
	case Pause:
		if s.pause == nil {
			s.pause = w.log.Begin("pause", "")
			s.c.Pause()
		}
	case Resume:
		w.resume(s)
	case Restart:
		w.moment("restart", "")
		s.c.Restart()
	}
}

// moment notes a fault that takes no time.
func (w *world) moment(kind, target string) { w.log.Begin(kind, target)() }
