//go:build !race

package migrate_test

import "github.com/succession-dev/succession/migrate/internal/protocol"

func (e *explorer) next(m model) {
	for p := range m.proc {
		if m.proc[p].mode != modes {
			e.process(m, p)
		}
	}
	if e.b.opposed {
		e.operators(m)
	} else {
		e.operate(m)
	}
}

// process does what process p can do next.
func (e *explorer) process(m model, p int) {
	q := m.proc[p]
	// The coordinator ends a session, also one whose process has crashed, or that
	// cannot be reached. Its deadline has passed.
	for side := range 2 {
		if m.side[side].find(p) < 0 {
			continue
		}
		if !q.dead && !q.closing && m.crashes >= e.b.crashes {
			continue // a healthy process keeps its sessions, but for so many accidents
		}
		n := m
		n.leave(side, p)
		if !q.dead && !q.closing {
			n.crashes++
			n.proc[p].closing = true
		}
		n.proc[p].lead = 0
		if q.lead == 1<<(1-side) || e.f.oneSided && q.lead != 0 && side == 1 { // the term hangs on the other side alone
			n.proc[p].lead, n.proc[p].closing = q.lead, false
		}
		n.gone(p)
		e.add(n)
	}
	// A seal that was sent may arrive when its process is no more.
	if q.ready {
		e.pin(m, p)
	}
	if q.dead {
		if m.side[0].find(p) < 0 && m.side[1].find(p) < 0 {
			n := m
			n.proc[p] = mProc{mode: q.mode}
			e.add(n)
		}
		return
	}
	if q.closing {
		return
	}
	if m.crashes < e.b.crashes {
		n := m
		n.crashes++
		n.proc[p].dead, n.proc[p].lead = true, 0
		e.add(n)
	}
	if side, ours, ok := q.uses(); ok {
		e.alone(m, p, side, ours)
		return
	}
	if from, to, ok := q.sides(); ok {
		e.composite(m, p, from, to)
	}
}

// alone is a client of one coordinator alone.
func (e *explorer) alone(m model, p, side int, ours bool) {
	s, q := &m.side[side], &m.proc[p]
	i := s.find(p)
	switch {
	case q.lead != 0 || i >= 0: // it resigns, or gives up
		n := m
		n.leave(side, p)
		if o := &n.side[1-side]; e.f.leaveSeal && q.lead != 0 && q.mode == both && o.sealed && o.n > 0 {
			o.remove(0)
		}
		n.proc[p].lead = 0
		n.gone(p)
		e.add(n)
	case (side == 1 || e.b.opposed) && !m.begun, !ours && s.target && s.step == stepAborted && !s.seal:
		// Who runs an election on a coordinator where nothing says that it is elsewhere
		// cannot be stopped: see doc.go.
	default:
		n := m
		if e.join(&n, side, p) {
			e.add(n)
		}
	}
	if i == 0 && q.lead == 0 && (!ours || e.d.alone(s, p) == leadsTo) {
		e.leads(m, p, 1<<side, s.token(0), ours)
	}
	if t := &m.side[1-side]; e.f.sealWithoutN && q.mode == both && i == 0 && q.lead != 0 && t.target && t.step == stepAsked {
		n := m
		n.proc[p].ready = true
		e.add(n)
	}
}

// composite is a process of this package that needs both coordinators, as far as it
// knows.
func (e *explorer) composite(m model, p, from, to int) {
	f, t, q := &m.side[from], &m.side[to], &m.proc[p]
	i := f.find(p)
	if i < 0 && t.find(p) < 0 {
		n := m
		j := e.judge(&m, from, to)
		alone := j == 1+to || j > 0 && e.f.early
		switch {
		case q.found: // long ago, perhaps
			n.proc[p].found = false
			if e.join(&n, from, p) {
				e.add(n)
			}
		case alone && e.b.opposed:
			n.proc[p].alone = uint8(j)
			e.add(n)
		case j >= 0 && e.b.opposed:
			n.proc[p].found = true
			e.add(n)
		case alone:
			n.proc[p].alone = uint8(j)
			if e.join(&n, j-1, p) {
				e.add(n)
			}
		case j >= 0:
			if e.f.targetFirst && p == 1 {
				from = to
			}
			if e.join(&n, from, p) {
				e.add(n)
			}
		}
		return
	}
	if e.f.targetFirst && i < 0 {
		n := m
		if e.join(&n, from, p) {
			e.add(n)
		}
	}
	up := m // it gives up or resigns: N first, then O
	up.proc[p].lead, up.proc[p].closing = 0, true
	up.leave(to, p)
	up.gone(p)
	e.add(up)
	v := e.d.verdict(&m, p, from, to)
	if e.f.ignoresConflict && f.behind(p) {
		i, v = 0, e.d.first(&m, p, from, to)
	}
	if q.lead == 0 && v == joinsAnew { // it is told at its re-check
		n := m
		n.leave(from, p)
		n.leave(to, p)
		n.gone(p)
		e.add(n)
		return
	}
	if i != 0 || f.sealed {
		return
	}
	e.take(m, p, from, to)
	if q.lead == 1<<from|1<<to {
		e.leading(m, p, from, to)
	}
}

// take is p first on from, which takes to as well, and leads.
func (e *explorer) take(m model, p, from, to int) {
	f, t := &m.side[from], &m.side[to]
	if m.proc[p].lead != 0 {
		return
	}
	v := e.d.first(&m, p, from, to)
	if e.f.noFence && (v == raisesFrom || v == raisesTo) {
		v = leadsBoth
	}
	switch v {
	case leadsFrom:
		n := m
		n.proc[p].alone = uint8(1 + from)
		n.leave(to, p)
		e.leads(n, p, 1<<from, f.token(0), true)
	case joinsTo:
		n := m
		if e.join(&n, to, p) {
			e.add(n)
		}
	case raisesFrom:
		n := m
		n.side[from].fence += t.token(1) - f.token(0)
		e.wrote(&n, from)
		e.add(n)
	case raisesTo:
		n := m
		n.side[to].fence += f.token(0) - t.token(1)
		e.wrote(&n, to)
		e.add(n)
	case leadsBoth:
		e.leads(m, p, 1<<from|1<<to, max(f.token(0), t.token(1)), true)
	}
}

// leading is p, which leads by both.
func (e *explorer) leading(m model, p, from, to int) {
	f, t := &m.side[from], &m.side[to]
	// It has seen that it is asked. Since then an abort may have begun, and what it reads
	// of N may be older than that.
	old := *t
	if old.step == stepAborting {
		old.step = stepAsked
	}
	choice := e.d.lead(&m, p, from, old)
	if choice == protocol.RaiseTo && (e.f.noFence || e.f.fenceOnce) {
		choice = protocol.Seal
	}
	n := m
	q := &n.proc[p]
	switch {
	case choice == protocol.StayOnFrom:
		q.lead, q.alone, q.read, q.ready = 1<<from, uint8(1+from), false, false
		n.leave(to, p)
	case choice == protocol.GoOn:
		return
	case !q.read:
		q.read = true
	case t.step != stepAsked && !e.f.unconfirmed:
		return // what it writes is refused
	case choice == protocol.RaiseTo:
		n.side[to].fence += f.token(0) - t.token(1)
		e.wrote(&n, to)
	case !q.ready:
		q.ready = true
		if !e.f.unconfirmed {
			e.wrote(&n, to)
		}
		if e.f.gateFirst {
			n.side[to].remove(0)
		}
	default:
		return
	}
	e.add(n)
}

// pin lets the seal of p arrive.
func (e *explorer) pin(m model, p int) {
	from, to, _ := m.proc[p].sides()
	f, t := &m.side[from], &m.side[to]
	i := f.find(p)
	if i != 0 || f.sealed {
		return
	}
	n := m
	s := &n.side[from]
	s.line[0].owner = nobody
	s.mRecord = sealed(t.mRecord)
	e.wrote(&n, from)
	n.proc[p].read, n.proc[p].ready = false, false
	if e.b.opposed {
		n.home = uint8(1 + to)
	}
	if m.proc[p].lead == 0 {
		n.gone(p)
		e.add(n)
		return
	}
	lost := n
	lost.proc[p].lead, lost.proc[p].closing = 0, true // it never learns, and gives up
	lost.gone(p)
	e.add(lost)
	n.proc[p].lead, n.proc[p].alone = 1<<to, uint8(1+to)
	if e.f.hangsOnO {
		n.proc[p].lead = 1 << from
	}
	e.add(n)
}

// operate does what an operator can do next. Every request of every step is a
// transition of its own and its conditions are what the step has checked, so an operator
// may crash, and another go on, between any two.
func (e *explorer) operate(m model) {
	for to := range 2 {
		from := 1 - to
		e.begin(m, from, to)
		e.decide(m, from, to)
		e.finish(m, from, to)
	}
	if o := m.side[0]; !m.raised && !o.sealed && !o.target && e.b.raise { // elect.Election.RaiseFence by a client of O
		n := m
		n.raised = true
		n.side[0].fence += 3
		n.max = max(n.max, n.side[0].fence)
		e.wrote(&n, 0)
		e.add(n)
	}
}

// begin begins the migration from one side to the other. What it has seen may be older than
// what stands there: who is not pinned may have joined since.
func (e *explorer) begin(m model, from, to int) {
	f, t := m.side[from].mRecord, &m.side[to]
	if e.f.backTooSoon {
		f = mRecord{}
	}
	d := e.d.step(begin, to, f, t.settled())
	g := t.find(operator)
	switch allowed := m.ids < e.b.ids && (m.begun || to == 1); {
	case !allowed || d.no:
	case d.act == protocol.Write: // the seal becomes the gate
		n := m
		e.writeGate(&n, to, d.record)
		e.add(n)
	case d.act == protocol.PutGate && g < 0:
		n := m
		if e.join(&n, to, operator) {
			e.add(n)
		}
	case d.act == protocol.PutGate && (t.first(g).mayPin(t.line[g].pos) || e.f.gateBehind):
		n := m
		n.side[to].line[g].owner = nobody
		d.record.gate = t.line[g].pos
		e.writeGate(&n, to, d.record)
		e.add(n)
	}
	if g >= 0 { // it refuses, or crashes
		n := m
		n.leave(to, operator)
		e.add(n)
	}
}

// first is the side before those joined who stand behind the i'th.
func (s mSide) first(i int) *mSide {
	s.n = uint8(i) + 1
	return &s
}

// writeGate writes the record of a migration that begins.
func (e *explorer) writeGate(m *model, to int, r mRecord) {
	if r.id == 0 {
		m.ids++
		r.id = m.ids
	}
	m.begun = true
	m.side[to].mRecord = r
	e.wrote(m, to)
	m.touched = false
}

// write replaces the target's record by a step of its own.
func (e *explorer) write(m model, to int, r mRecord) model {
	m.side[to].mRecord = r
	e.wrote(&m, to)
	m.touched = false
	return m
}

// decide is a cutover or an abort. What it has seen of the source may be older than what
// stands there: the seal may have been set since.
func (e *explorer) decide(m model, from, to int) {
	f, t := m.side[from].mRecord, &m.side[to]
	if d := e.d.step(cutover, to, mRecord{}, t.view()); !d.no && d.act == protocol.Write {
		e.add(e.write(m, to, d.record))
	}
	d := e.d.step(abort, to, mRecord{}, t.view())
	switch {
	case d.no:
	case d.act == protocol.Write:
		e.add(e.write(m, to, d.record))
	case d.act == protocol.Touch && m.touched: // it has read the source's record before that
		r, _ := e.d.aborted(mRecord{}, t.mRecord)
		r.sealed = !e.f.abortKeepsN
		e.add(e.write(m, to, r))
	case d.act == protocol.Touch:
		if _, ok := e.d.aborted(f, t.mRecord); ok {
			n := m
			if !e.f.noTouch {
				e.wrote(&n, from)
			}
			n.touched = true
			e.add(n)
		}
	}
	opens := !d.no && d.act == protocol.OpenGate
	if t.target && t.step == stepAborted && t.gateIndex() == 0 && (e.f.abortNoSeal && t.n == 1 || e.f.abortKeepsN && !t.seal) {
		opens = true
	}
	if opens {
		n := m
		n.side[to].remove(0)
		e.add(n)
	}
	if m.touched {
		n := m
		n.touched = false // this operator crashes
		e.add(n)
	}
}

// finish is the second step of the cutover, by anybody.
func (e *explorer) finish(m model, from, to int) {
	f, t := m.side[from].mRecord, &m.side[to]
	if e.f.eagerFinish && t.step == stepAsked {
		f = sealed(t.mRecord)
	}
	r, ok := e.d.moved(f, t.mRecord)
	switch {
	case !ok:
	case t.gateIndex() == 0:
		n := m
		n.side[to].remove(0)
		e.add(n)
	default:
		e.add(e.write(m, to, r))
	}
}
