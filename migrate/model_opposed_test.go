//go:build !race

package migrate_test

import "testing"

// check checks what two operators in opposite directions are promised, besides what
// everybody is: see doc.go, "One migration at a time".
func (e *explorer) check(m model) {
	if m.side[0].gateIndex() == 0 && m.side[1].gateIndex() == 0 && m.side[0].gated() && m.side[1].gated() {
		for p, q := range m.proc {
			if q.lead != 0 {
				e.fail("process %d (%s) leads in a conflict\n%+v", p, modeNames[q.mode], m)
			}
		}
		if m.op[0].sure && m.op[1].sure {
			e.fail("both gates stand, and nobody was told\n%+v", m)
		}
	}
	if m.idle() && !e.mends(m) {
		e.fail("no step leads out\n%+v", m)
	}
}

// idle reports whether no operator has anything under way. Any of them may stop at any
// time, so what is said of every such state is said of every state.
func (m *model) idle() bool {
	for _, op := range m.op {
		if op.next.what != reqLook || op.late.what != reqLook {
			return false
		}
	}
	return true
}

// mends says whether, when every process has crashed, every session has ended and no
// request is on its way, operators who take one step at a time and one new process for
// each direction can bring the election to where somebody leads after a cutover.
func (e *explorer) mends(m model) bool {
	var c model
	c.begun, c.ids = true, 2
	for side := range c.side { // with small numbers, so that many states are one
		s, was := &c.side[side], &m.side[side]
		s.mRecord = was.mRecord
		s.gate, s.next = 0, 1
		if was.n > 0 && was.line[0].owner == nobody {
			s.line[0] = mMember{nobody, 1}
			s.n, s.next = 1, 2
		}
		switch {
		case was.gateIndex() == 0:
			s.gate = 1
		case was.gate != 0: // it has gone
			s.gate = 100
		}
		if s.id != 0 {
			s.id = 1
		}
		if side == 1 && s.id != 0 && was.id != m.side[0].id {
			s.id = 2
		}
	}
	for side := range c.side {
		s, was := &c.side[side], &m.side[side]
		if s.over = 0; was.over != 0 && was.over == m.side[1-side].gate {
			s.over = c.side[1-side].gate
		}
	}
	for p := range c.proc {
		c.proc[p].mode = modes
	}
	c.proc[0].mode, c.proc[1].mode = both, reverse
	if known, ok := e.mended[c]; ok {
		return known
	}
	if e.mended == nil {
		e.mended = make(map[model]bool)
	}
	x := explorer{f: e.f, d: e.d, b: bounds{joins: 12, ids: 6, opposed: true}, seen: make(map[model]struct{}), tidy: true}
	e.mended[c] = x.reaches(c)
	return e.mended[c]
}

// reaches says whether somebody can lead after a cutover, without giving up or crashing
// on the way.
func (e *explorer) reaches(m model) bool {
	e.add(m)
	for len(e.todo) > 0 {
		m := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		for p, q := range m.proc {
			for side := range m.side {
				if s := &m.side[side]; s.target && s.step == stepMoved && !s.sealed && q.lead == 1<<side {
					return true
				}
			}
			if q.mode == modes || !m.idle() {
				continue
			}
			if q.ready {
				e.pin(m, p)
			}
			if from, to, _ := q.sides(); q.lead == 1<<from|1<<to {
				e.leading(m, p, from, to)
			} else if q.lead == 0 {
				e.willing(m, p)
			}
		}
		e.operators(m)
	}
	return false
}

// Each side has two or three positions, of which the gates take one: enough for who is
// in the way, and for one more after it. Processes give up, but do not crash, and keep
// their sessions, as the states would be too many.
var opposedBounds = bounds{joins: 3, ids: 2, opposed: true}

func TestModelOpposed(t *testing.T) {
	t.Parallel()
	var mixes []mix
	for joins := uint8(3); joins <= 4; joins++ { // operators alone, whose writes may be late
		mixes = append(mixes, mix{bounds{joins: joins, crashes: 1, ids: joins - 1, opposed: true}, nil})
	}
	for a := uint8(0); a < modes; a++ {
		mixes = append(mixes, mix{opposedBounds, []uint8{a}})
		for b := a + 1; b < modes && *wholeModel; b++ {
			mixes = append(mixes, mix{opposedBounds, []uint8{a, b}})
		}
	}
	explores(t, mixes)
}
