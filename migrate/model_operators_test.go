package migrate_test

// Two operators, one of whom moves the election to N and the other one to O. The steps
// of operate check and write at once; here each request is a transition. What it has read
// is kept until it is used, and meanwhile the other operator, the processes and the
// end of its own session come in between. An operator may stop before any request, and begin
// any step anew, and a write that it has sent may arrive later.
//
// What is not promised is left out:
//
//   - The election is in use nowhere before a migration of it has begun. Records cannot
//     tell which of the two directions is the right one.
//   - Operators know where it is in use (home). They begin no migration from the other
//     side, and where they have to abort one of two, it is not that one.

// A request is what an operator sends next.
const (
	reqLook     = iota // the line of the target; it has begun no step
	reqLook2           // the line of the source
	reqJoin            // the member that will be the gate
	reqCheck           // the line of the target again
	reqPin             // the gate
	reqResign          // that member is not to be the gate: it leaves
	reqSeal            // the seal becomes the gate
	reqAsk             // the leader, to cut over
	reqForbid          // the cutover: an abort begins
	reqGet             // the record of the source
	reqTouch           // that record: what was asked for cannot be done any more
	reqAbort           // the election stays on the source
	reqOpen            // takes away the gate of what was aborted
	reqGiveWay         // of two opposed migrations the other one goes on
	reqWithdraw        // takes away the gate in a conflict
	reqForget          // clears the record in a conflict
	reqFinish          // the line of the target, to finish what the seal has decided
	reqUngate          // takes away the gate
	reqMoved           // the election is there
)

type mReq struct {
	what uint8
	pos  uint8   // of the gate
	id   uint8   // of the migration; 0 for a new one
	old  [2]bool // the side's record has been written since it was read
}

// An mOp is an operator.
type mOp struct {
	next mReq
	late mReq  // a write of a step that it has stopped taking, on its way
	saw  mView // what the look at the first line has shown
	sure bool  // Begin has returned that the migration is begun, and nobody has aborted it since
}

// An mView is what a step needs of a line.
type mView struct {
	mRecord
	n    uint8 // members; at most 2
	head uint8 // position of the first, if it is pinned
}

func (s *mSide) view() mView {
	v := mView{mRecord: s.mRecord, n: min(s.n, 2)}
	if s.n > 0 && s.line[0].owner == nobody {
		v.head = s.line[0].pos
	}
	return v
}

// stands reports whether the gate does.
func (v mView) stands() bool { return v.target && v.gate != 0 && v.head == v.gate }

func (e *explorer) operators(m model) {
	for to := range 2 {
		if other := m.op[1-to].next.what; e.tidy && other != reqLook {
			continue
		}
		e.operator(m, to)
	}
	e.operateFinish(m) // by any process that joins
}

func (e *explorer) operator(m model, to int) {
	op := &m.op[to]
	if op.late.what != 0 {
		n := m
		n.op[to].late = mReq{}
		e.perform(&n, to, op.late)
		e.add(n)
	}
	if m.side[to].find(operator) >= 0 && !e.tidy { // its session ends
		n := m
		n.leave(to, operator)
		e.add(n)
	}
	if op.next.what != reqLook { // it stops
		n := m
		n.op[to].next, n.op[to].saw = mReq{}, mView{}
		e.add(n)
		if op.next.writes() && m.crashes < e.b.crashes {
			n.op[to].late = op.next
			n.crashes++
			e.add(n)
		}
	}
	// The source last: what has changed on the target since is seen by the version that
	// a write names.
	first, second := to, 1-to
	if e.f.sourceFirst {
		first, second = second, first
	}
	switch req := op.next; req.what {
	case reqLook:
		n := m
		n.op[to].saw = n.side[first].view()
		n.op[to].next.what = reqLook2
		e.add(n)
	case reqLook2:
		n := m
		n.op[to].saw = mView{}
		if second == to {
			n.op[to].next.old[to] = false
		}
		var views [2]mView
		views[first], views[second] = op.saw, m.side[second].view()
		e.choose(n, to, views[1-to], views[to])
	default:
		n := m
		ok := e.perform(&n, to, req)
		e.follow(n, to, req, ok)
	}
}

func (r mReq) writes() bool {
	switch r.what {
	case reqLook, reqLook2, reqJoin, reqCheck, reqResign, reqGet, reqFinish:
		return false
	}
	return true
}

// names reports whether the request, of an operator who moves the election to to, or one
// that follows it, names the version of the side's record.
func (r mReq) names(side, to int) bool {
	switch r.what {
	case reqLook, reqResign, reqOpen, reqWithdraw, reqFinish:
		return false
	case reqTouch:
		return true
	case reqGiveWay:
		return side == deciding
	}
	return side == to
}

// deciding is the side whose record says which of two opposed migrations goes on.
const deciding = 0

// then has the operator send what next.
func (e *explorer) then(m model, to int, what, pos, id uint8) {
	r := &m.op[to].next
	r.what, r.pos, r.id = what, pos, id
	for side := range r.old {
		r.old[side] = r.old[side] && r.names(side, to)
	}
	e.add(m)
}

// choose takes every step that what the operator has seen of source and target allows.
func (e *explorer) choose(m model, to int, f, t mView) {
	r := rule(f.mRecord, t.mRecord)
	e.chooseBegin(m, to, f, t, r)
	switch {
	case r == half:
		e.then(m, to, reqFinish, 0, f.id)
	case r == needsBoth && t.step == stepAborting:
		e.then(m, to, reqGet, 0, 0)
	case r == needsBoth:
		if t.step == stepBegun && t.stands() {
			e.then(m, to, reqAsk, 0, 0)
		}
		e.then(m, to, reqForbid, 0, 0)
	case r == staysFrom && t.stands() && !t.seal && t.step == stepAborted && t.n == 1:
		e.then(m, to, reqOpen, t.gate, 0)
	case r == conflict && m.home == uint8(2-to): // the other one is to be aborted: its source is not in use
	case r == conflict && t.step != stepWithdrawn && f.over != t.gate && !e.f.undecided:
		if f.step != stepWithdrawn && (t.over == 0 || t.over != f.gate) {
			e.then(m, to, reqGiveWay, t.gate, 0)
		}
	case r == conflict && (!t.stands() || e.f.forgetsFirst):
		e.then(m, to, reqForget, 0, 0)
	case r == conflict && t.n == 1:
		e.then(m, to, reqWithdraw, t.gate, 0)
	}
}

func (e *explorer) chooseBegin(m model, to int, f, t mView, r int) {
	var id uint8
	switch {
	case r == conflict, r == opposite, f.gated(), r == movedTo, r == half, r == broken:
		return
	case r == needsBoth && t.stands():
		m.op[to].sure = true
		e.then(m, to, reqLook, 0, 0)
		return
	case r == needsBoth:
		id = t.id // the gate has gone, and not by a step
	case r == staysFrom && t.stands() && !t.seal && t.step == stepAborted:
		return // abort has still to remove its gate
	}
	switch {
	case id == 0 && m.ids >= e.b.ids, m.home == uint8(1+to):
	case t.sealed && t.head != 0 && t.n == 1:
		e.then(m, to, reqSeal, t.head, id)
	case t.n == 0:
		e.then(m, to, reqJoin, 0, id)
	}
}

// perform is what the coordinator does with a request. It reports whether the request's
// condition held.
func (e *explorer) perform(m *model, to int, r mReq) bool {
	from := 1 - to
	s := &m.side[to]
	switch r.what {
	case reqJoin:
		return e.join(m, to, operator)
	case reqPin:
		i := s.find(operator)
		if i < 0 || s.line[i].pos != r.pos || r.old[to] && !e.f.unversionedGate {
			return false
		}
		s.line[i].owner = nobody
		e.gate(m, to, r, false)
	case reqSeal:
		if r.old[to] {
			return false
		}
		e.gate(m, to, r, true)
	case reqResign:
		m.leave(to, operator)
	case reqGet:
		f := &m.side[from]
		return !f.sealed && (!f.gated() || e.f.abortsBlind)
	case reqTouch:
		if r.old[from] {
			return false
		}
		e.wrote(m, from)
	case reqOpen, reqUngate:
		s.open(r.pos)
	case reqWithdraw:
		s.open(r.pos)
		if f := &m.side[from]; e.f.abortsOther {
			f.open(f.gate)
		}
	case reqGiveWay:
		side := deciding
		if e.f.decidesApart {
			side = to
		}
		if r.old[side] && !e.f.unversionedChoice {
			return false
		}
		if side == to {
			s.step = stepWithdrawn
		} else {
			m.side[side].over = r.pos
		}
		e.wrote(m, side)
	case reqAsk, reqForbid, reqAbort, reqForget, reqMoved:
		if r.old[to] {
			return false
		}
		switch r.what {
		case reqAsk:
			s.step = stepAsked
		case reqForbid:
			s.step = stepAborting
		case reqAbort:
			s.step, s.sealed = stepAborted, true
		case reqForget:
			s.mRecord = mRecord{}
		case reqMoved:
			s.step = stepMoved
		}
		e.wrote(m, to)
	}
	if s.step != stepBegun && s.step != stepAsked {
		m.op[to].sure = false
	}
	return true
}

// open removes the gate at the position, where it stands.
func (s *mSide) open(pos uint8) {
	if s.n > 0 && s.line[0] == (mMember{nobody, pos}) {
		s.remove(0)
	}
}

// gate writes the record of a migration that has begun.
func (e *explorer) gate(m *model, to int, r mReq, seal bool) {
	if r.id == 0 {
		m.ids++
		r.id = m.ids
	}
	m.side[to].mRecord = mRecord{target: true, id: r.id, step: stepBegun, gate: r.pos, seal: seal}
	m.begun = true
	e.wrote(m, to)
}

// follow sends what comes after a request.
func (e *explorer) follow(m model, to int, r mReq, ok bool) {
	op, s := &m.op[to], &m.side[to]
	switch {
	case r.what == reqJoin && ok:
		e.then(m, to, reqCheck, s.line[s.n-1].pos, r.id)
	case r.what == reqCheck:
		alone := s.n == 1 && s.line[0] == (mMember{operator, r.pos})
		if (alone || e.f.joinAndPin) && !r.old[to] {
			e.then(m, to, reqPin, r.pos, r.id)
		} else {
			e.then(m, to, reqResign, r.pos, 0)
		}
	case r.what == reqPin && !ok:
		e.then(m, to, reqResign, r.pos, 0)
	case r.what == reqPin && e.f.blindBegin:
		op.sure = true
		e.then(m, to, reqLook, 0, 0)
	case r.what == reqGet && ok:
		op.next.old[1-to] = false
		e.then(m, to, reqTouch, 0, 0)
	case r.what == reqTouch && ok:
		e.then(m, to, reqAbort, 0, 0)
	case r.what == reqFinish && s.gated() && s.id == r.id:
		op.next.old[to] = false
		if v := s.view(); v.stands() {
			e.then(m, to, reqUngate, v.gate, r.id)
		} else {
			e.then(m, to, reqMoved, 0, r.id)
		}
	case r.what == reqUngate:
		e.then(m, to, reqMoved, 0, r.id)
	case r.what == reqMoved && !ok:
		e.then(m, to, reqFinish, 0, r.id)
	default:
		e.then(m, to, reqLook, 0, 0) // again, if at all
	}
}
