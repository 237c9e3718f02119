//go:build !race

package migrate_test

// recover says whether, when every process has crashed and every session has ended,
// an operator and one new process that goes the same way reach the end of the
// migration, or of its abort. It returns what is in the way.
func (e *explorer) recover(m model) string {
	for side := range m.side {
		s := &m.side[side]
		for i := int(s.n) - 1; i >= 0; i-- {
			if s.line[i].owner != nobody {
				s.remove(i)
			}
		}
	}
	to := 1
	if m.side[0].gated() {
		to = 0
	}
	from := 1 - to
	f, t := &m.side[from], &m.side[to]
	switch {
	case !t.gated():
		if f.sealed && t.sealed {
			return "both sides are sealed"
		}
		return ""
	case f.sealed && f.id == t.id:
		return "" // finish needs nothing else
	case f.sealed:
		return "the source is sealed by another migration"
	case t.gateIndex() < 0:
		return "the gate is gone and nothing is sealed"
	case f.n > 0:
		return "a pinned member keeps everybody from the source"
	}
	return "" // a composite gets first on both, and seals or is told of the abort
}

// stuck says whether candidates that are healthy, and left alone, get no leader.
func (e *explorer) stuck(m model) bool {
	want := false
	for p, q := range m.proc {
		if q.dead || q.closing || q.mode == modes {
			m.leave(0, p)
			m.leave(1, p)
			m.proc[p] = mProc{mode: modes}
			continue
		}
		switch q.mode {
		case both, reverse:
			from, to, _ := q.sides()
			j := e.judge(&m, from, to)
			want = want || j > 0 || j == 0 && m.side[to].gateIndex() == 0
		case newOnly, foreignNew:
			return false // it may stand in the way: doc.go says so
		case oldOnly, foreignOld:
			if e.b.opposed && m.side[0].gated() {
				return false // and so may this
			}
		}
	}
	m.leave(0, operator)
	m.leave(1, operator)
	if !want || m.side[0].gated() && m.side[0].seal { // those who wait at the seal stand in the way too
		return false
	}
	// Only what a candidate does by itself to lead: it neither gives up nor crashes.
	x := explorer{f: e.f, d: e.d, b: bounds{joins: 60}, seen: map[model]struct{}{m: {}}, todo: []model{m}}
	for len(x.todo) > 0 && len(x.seen) < 300 {
		s := x.todo[len(x.todo)-1]
		x.todo = x.todo[:len(x.todo)-1]
		for p, q := range s.proc {
			if q.lead != 0 || x.bad != "" {
				return false
			}
			if q.mode != modes {
				x.willing(s, p)
			}
			x.operateFinish(s)
		}
	}
	return len(x.todo) == 0
}

// willing is process without crashing or giving up.
func (e *explorer) willing(m model, p int) {
	q := &m.proc[p]
	if side, ours, ok := q.uses(); ok {
		s := &m.side[side]
		switch i := s.find(p); {
		case q.alone > 0 && i >= 0 && e.d.alone(s, p) == joinsAnew: // it finds out at its re-check
			n := m
			n.leave(side, p)
			n.gone(p)
			e.add(n)
		case i < 0, i == 0 && (!ours || !s.sealed):
			e.alone(m, p, side, ours)
		}
		return
	}
	from, to, _ := q.sides()
	f := &m.side[from]
	switch i := f.find(p); {
	case i < 0 && m.side[to].find(p) < 0, f.sealed, i > 0 && f.gated():
		e.composite(m, p, from, to)
	case i < 0: // only by the flaw
		n := m
		if e.join(&n, from, p) {
			e.add(n)
		}
	case i == 0:
		e.take(m, p, from, to)
	}
}

func (e *explorer) operateFinish(m model) {
	e.finish(m, 0, 1)
	e.finish(m, 1, 0)
}
