package migrate_test

// A ruling is what two records say to who moves the election from one side to the
// other.
const (
	notBegun = iota
	needsBoth
	movedTo   // also where the gate still stands behind which it is
	half      // sealed by the migration whose gate still stands
	staysFrom // aborted, or gone back
	conflict  // both have a gate, or the target's is about to go because both had
	opposite  // the source has a gate
	broken    // both are sealed
)

func rule(from, to mRecord) int {
	switch {
	case to.target && to.step == stepMoved && !to.sealed:
		return movedTo
	case from.sealed && to.sealed:
		return broken
	case from.sealed && to.gated() && from.id == to.id:
		return half
	case from.sealed:
		return movedTo
	case to.sealed:
		return staysFrom
	case from.gated() && to.gated():
		return conflict
	case from.gated():
		return opposite
	case to.gated() && to.step == stepWithdrawn:
		return conflict
	case to.gated():
		return needsBoth
	}
	return notBegun
}

// A verdict is what a composite that stands in line does next, as it finds the two sides.
type verdict uint8

const (
	waitsOnFrom verdict = iota
	waitsOnTo
	joinsAnew // the election is elsewhere, or its place has gone
	refuses   // it is first, and the other side has no place for it
	joinsTo
	raisesFrom // its fence
	raisesTo
	leadsFrom // by that alone: the migration was aborted
	leadsBoth
	leadsTo // by that alone
)

// verdict is that of p, which needs both sides, as far as it knew when it joined from.
func (m *model) verdict(p, from, to int) verdict {
	f := &m.side[from]
	switch i := f.find(p); {
	case i < 0, f.sealed, i > 0 && f.gated():
		return joinsAnew
	case i > 0:
		return waitsOnFrom
	}
	return m.first(p, from, to)
}

// first is the verdict of p where it is first on from, whatever the record there says.
func (m *model) first(p, from, to int) verdict {
	f, t := &m.side[from], &m.side[to]
	switch rule(mRecord{}, t.mRecord) {
	case movedTo:
		return joinsAnew
	case staysFrom:
		return leadsFrom
	case notBegun, conflict:
		return refuses
	}
	switch i := t.find(p); {
	case t.gateIndex() < 0:
		return refuses
	case i < 0:
		return joinsTo
	case i > 1:
		return waitsOnTo
	case f.token(0) < t.token(1):
		return raisesFrom
	case t.token(1) < f.token(0):
		return raisesTo
	}
	return leadsBoth
}

// alone is the verdict of p where it uses the side alone, to which the election has moved.
func (s *mSide) alone(p int) verdict {
	switch i := s.find(p); {
	case i < 0, s.sealed, i > 0 && s.gated():
		return joinsAnew
	case i > 0:
		return waitsOnTo
	}
	return leadsTo
}
