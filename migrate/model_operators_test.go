//go:build !race

package migrate_test

import "github.com/succession-dev/succession/migrate/internal/protocol"

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
	reqLook   = iota // the line of the target; it has begun no step
	reqLook2         // the line of the source
	reqJoin          // the member that will be the gate
	reqCheck         // the line of the target again
	reqPin           // the gate
	reqResign        // that member is not to be the gate: it leaves
	reqWrite         // a record, as a step has decided
	reqGet           // the record of the source
	reqTouch         // that record as it was: what was asked for cannot be done any more
	reqAbort         // the election stays on the source
	reqOpen          // takes away the gate of what is aborted
	reqFinish        // the line of the target, to finish what the seal has decided
	reqUngate        // takes away the gate
	reqMoved         // the election is there
)

type mReq struct {
	what   uint8
	pos    uint8   // of the gate
	side   uint8   // of reqWrite
	record mRecord // that is written; from reqFinish on the source's, as it was read
	old    [2]bool // the side's record has been written since it was read
}

// An mOp is an operator.
type mOp struct {
	next mReq
	late mReq  // a write of a step that it has stopped taking, on its way
	saw  mView // what the look at the first line has shown
	sure bool  // Begin has returned that the migration is begun, and nobody has aborted it since
}

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
	case reqLook, reqResign, reqOpen, reqFinish:
		return false
	case reqTouch:
		return true
	case reqWrite:
		return side == int(r.side)
	}
	return side == to
}

// then has the operator send next what follows what it has read.
func (e *explorer) then(m model, to int, next mReq) {
	r := &m.op[to].next
	next.old = r.old
	*r = next
	for side := range r.old {
		r.old[side] = r.old[side] && r.names(side, to)
	}
	e.add(m)
}

// choose takes every step that what the operator has seen of source and target allows.
func (e *explorer) choose(m model, to int, f, t mView) {
	conflict := e.d.phase(f.mRecord, t.mRecord) == protocol.Conflict
	for _, step := range []uint8{begin, cutover, finish, abort} {
		ft, tt := f.mRecord, t
		if step == abort && conflict {
			if m.home == uint8(2-to) { // the other one is to be aborted: its source is not in use
				continue
			}
			ft, tt = e.mistakes(ft, tt)
		}
		d := e.d.step(step, to, ft, tt)
		if d.no {
			continue
		}
		switch d.act {
		case protocol.Nothing:
			if step == begin {
				n := m
				n.op[to].sure = true
				e.then(n, to, mReq{})
			}
		case protocol.PutGate:
			if t.n == 0 && e.mayBegin(&m, to, d.record) {
				e.then(m, to, mReq{what: reqJoin, record: d.record})
			}
		case protocol.Write:
			if step == begin && !e.mayBegin(&m, to, d.record) {
				continue
			}
			if e.f.decidesApart && d.side != uint8(to) {
				d.side, d.record = uint8(to), t.mRecord
				d.record.step = stepWithdrawn
			}
			e.then(m, to, mReq{what: reqWrite, side: d.side, record: d.record})
		case protocol.OpenGate:
			e.then(m, to, mReq{what: reqOpen, pos: d.gate})
		case protocol.Touch:
			e.then(m, to, mReq{what: reqGet})
		case protocol.EndMove:
			e.then(m, to, mReq{what: reqFinish, record: f.mRecord})
		}
	}
}

// mayBegin reports whether the model lets an operator begin a migration with this record,
// or take part in one.
func (e *explorer) mayBegin(m *model, to int, r mRecord) bool {
	return m.home != uint8(1+to) && (r.id != 0 || m.ids < e.b.ids)
}

// mistakes returns what an abort in a conflict takes the source's record and the target's line
// for that must not.
func (e *explorer) mistakes(f mRecord, t mView) (mRecord, mView) {
	if e.f.undecided {
		t.step, t.over, f.over = stepWithdrawn, 0, 0
		if f.step == stepWithdrawn {
			f.step = stepBegun
		}
	}
	if e.f.forgetsFirst && (t.step == stepWithdrawn || f.over == t.gate) {
		t.n, t.head = 0, 0
	}
	return f, t
}

// perform is what the coordinator does with a request. It reports whether the request's
// condition held.
func (e *explorer) perform(m *model, to int, r mReq) bool {
	from := 1 - to
	s, f := &m.side[to], &m.side[from]
	switch r.what {
	case reqJoin:
		return e.join(m, to, operator)
	case reqPin:
		i := s.find(operator)
		if i < 0 || s.line[i].pos != r.pos || r.old[to] && !e.f.unversionedGate {
			return false
		}
		s.line[i].owner = nobody
		r.record.gate = r.pos
		e.writeGate(m, to, r.record)
	case reqResign:
		m.leave(to, operator)
	case reqGet:
		read := f.mRecord
		if e.f.abortsBlind && !read.sealed {
			read = mRecord{}
		}
		_, ok := e.d.aborted(read, s.mRecord)
		return ok
	case reqTouch:
		if r.old[from] {
			return false
		}
		e.wrote(m, from)
	case reqOpen, reqUngate:
		s.open(r.pos)
		if conflict := e.d.phase(f.mRecord, s.mRecord) == protocol.Conflict; conflict && e.f.abortsOther {
			f.open(f.gate)
		}
	case reqWrite:
		if r.old[r.side] && !(e.f.unversionedChoice && (r.record.step == stepWithdrawn || r.record.over != 0)) {
			return false
		}
		if r.record.step == stepBegun && r.record.seal && r.record.id == 0 {
			e.writeGate(m, to, r.record)
			break
		}
		m.side[r.side].mRecord = r.record
		e.wrote(m, int(r.side))
	case reqAbort, reqMoved:
		written, ok := e.d.aborted(mRecord{}, s.mRecord)
		if r.what == reqMoved {
			written, ok = e.d.moved(r.record, s.mRecord)
		}
		if r.old[to] || !ok {
			return false
		}
		s.mRecord = written
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

// follow sends what comes after a request.
func (e *explorer) follow(m model, to int, r mReq, ok bool) {
	op, s := &m.op[to], &m.side[to]
	switch {
	case r.what == reqJoin && ok:
		e.then(m, to, mReq{what: reqCheck, pos: s.line[s.n-1].pos, record: r.record})
	case r.what == reqCheck && (s.mayPin(r.pos) || e.f.joinAndPin) && !r.old[to]:
		e.then(m, to, mReq{what: reqPin, pos: r.pos, record: r.record})
	case r.what == reqCheck, r.what == reqPin && !ok:
		e.then(m, to, mReq{what: reqResign, pos: r.pos})
	case r.what == reqPin && e.f.blindBegin:
		op.sure = true
		e.then(m, to, mReq{})
	case r.what == reqGet && ok:
		op.next.old[1-to] = false
		e.then(m, to, mReq{what: reqTouch})
	case r.what == reqTouch && ok:
		e.then(m, to, mReq{what: reqAbort})
	case r.what == reqFinish:
		op.next.old[to] = false
		if _, ok := e.d.moved(r.record, s.mRecord); !ok {
			e.then(m, to, mReq{})
		} else if v := s.view(); v.stands() {
			e.then(m, to, mReq{what: reqUngate, pos: v.gate, record: r.record})
		} else {
			e.then(m, to, mReq{what: reqMoved, record: r.record})
		}
	case r.what == reqUngate:
		e.then(m, to, mReq{what: reqMoved, record: r.record})
	case r.what == reqMoved && !ok:
		e.then(m, to, mReq{what: reqFinish, record: r.record})
	default:
		e.then(m, to, mReq{}) // looks again, if at all
	}
}

// stands reports whether the gate does.
func (v mView) stands() bool { return v.target && v.gate != 0 && v.head == v.gate }
