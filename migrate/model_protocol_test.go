//go:build !race

package migrate_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// What a composite and an operator do next is not the model's to say: it shows the sides,
// as they find them, to the functions of package protocol that they call as well. As the
// same sides are found in many states, the answers are kept.

// modelURLs are the addresses of the two sides.
var modelURLs = [2]string{"memory:old", "memory:new"}

// routes are those of the two directions, by the side that the election moves to.
var routes = [2]protocol.Route{{From: modelURLs[1], To: modelURLs[0]}, {From: modelURLs[0], To: modelURLs[1]}}

// stepNames are the steps as the record has them.
var stepNames = [...]string{
	stepNone: "", stepBegun: protocol.StepBegun, stepAsked: protocol.StepAsked, stepAborting: protocol.StepAborting,
	stepAborted: protocol.StepAborted, stepWithdrawn: protocol.StepWithdrawn, stepMoved: protocol.StepMoved, stepSealed: protocol.StepSealed,
}

// newID is that of a migration that begins.
const newID = "0"

// header is a record of the side as package migrate writes it.
func (r mRecord) header(side int) (h header.Header) {
	if r.sealed {
		h.Sealed = modelURLs[1-side]
	}
	if r.step == stepNone {
		return h
	}
	from, to := side, 1-side
	if r.target {
		from, to = to, from
	}
	h.Migration = header.Migration{
		ID: fmt.Sprint(r.id), From: modelURLs[from], To: modelURLs[to], Step: stepNames[r.step], Gate: uint64(r.gate), Seal: r.seal, Over: uint64(r.over),
	}
	return h
}

// recordOf is the opposite of header.
func recordOf(h header.Header, side int) mRecord {
	m := h.Migration
	r := mRecord{
		sealed: h.Sealed != "", target: m.To == modelURLs[side], step: uint8(slices.Index(stepNames[:], m.Step)),
		gate: uint8(m.Gate), seal: m.Seal, over: uint8(m.Over),
	}
	fmt.Sscan(m.ID, &r.id)
	return r
}

// member is a member of a side as the code sees it.
func member(m mMember) backend.Member {
	b := backend.Member{Line: election, Key: fmt.Sprintf("n_%d", m.pos), Position: uint64(m.pos), Pinned: m.owner == nobody}
	if m.owner == operator {
		b.Value = protocol.GateValue
	}
	return b
}

// seen is the line of a side as the code sees it.
func (s *mSide) seen(side int) header.Line {
	l := header.Line{Version: 1, Header: s.header(side)}
	l.Header.Fence = uint64(s.fence)
	for _, m := range s.line[:s.n] {
		l.Members = append(l.Members, member(m))
	}
	return l
}

// as returns the side with the members of all processes but p alike.
func (s mSide) as(p int) mSide {
	s.next = 0
	for i := range s.line[:s.n] {
		switch owner := &s.line[i].owner; *owner {
		case uint8(p):
			*owner = me
		case nobody:
		default:
			*owner = others
		}
	}
	return s
}

// The owners of members in such a side.
const (
	me     = 0
	others = 1
)

// decisions are what package protocol has decided. The zero value keeps none.
type decisions struct {
	phases map[[2]mRecord]protocol.Phase
	places map[placeKey]verdict
	takes  map[sideKey]verdict
	leads  map[sideKey]protocol.Choice
	steps  map[stepKey]mDecision
	aborts map[[2]mRecord]mDecision
	moves  map[[2]mRecord]mDecision
}

func newDecisions() *decisions {
	return &decisions{
		phases: make(map[[2]mRecord]protocol.Phase), places: make(map[placeKey]verdict),
		takes: make(map[sideKey]verdict), leads: make(map[sideKey]protocol.Choice), steps: make(map[stepKey]mDecision),
		aborts: make(map[[2]mRecord]mDecision), moves: make(map[[2]mRecord]mDecision),
	}
}

// kept returns what is kept under the key, or what decide returns, which is kept then.
func kept[K comparable, V any](in map[K]V, key K, decide func(K) V) V {
	v, ok := in[key]
	if !ok {
		if v = decide(key); in != nil {
			in[key] = v
		}
	}
	return v
}

// phase is that of who moves the election from one side to the other.
func (d *decisions) phase(from, to mRecord) protocol.Phase {
	return kept(d.phases, [2]mRecord{from, to}, func(k [2]mRecord) protocol.Phase {
		phase, _ := routes[1].Phase(k[0].header(0), k[1].header(1))
		return phase
	})
}

// A verdict is what a composite that stands in line does next, as it finds the two sides.
type verdict uint8

const (
	waitsOnFrom verdict = iota
	waitsOnTo
	joinsAnew // the election is elsewhere, or its member has gone
	refuses   // it is first, and the other side has no place for it
	joinsTo
	raisesFrom // its fence
	raisesTo
	leadsFrom // by that alone: the migration was aborted
	leadsBoth
	leadsTo // by that alone
)

var choiceVerdicts = map[protocol.Choice]verdict{
	protocol.Rejoin: joinsAnew, protocol.StayOnFrom: leadsFrom, protocol.JoinTo: joinsTo, protocol.WaitOnTo: waitsOnTo,
	protocol.RaiseFrom: raisesFrom, protocol.RaiseTo: raisesTo, protocol.LeadByBoth: leadsBoth,
}

type placeKey struct {
	behind bool // others
	mRecord
}

// place is the verdict on a member, by the side alone on which it stands: first is the one
// where nobody stands in front of it, and waits the one where somebody does.
func (d *decisions) place(s *mSide, p int, first, waits verdict) verdict {
	i := s.find(p)
	if i < 0 {
		return joinsAnew
	}
	switch v := kept(d.places, placeKey{i > 0, s.mRecord}, placeOf); v {
	case leadsFrom:
		return first
	case waitsOnFrom:
		return waits
	default:
		return v
	}
}

func placeOf(k placeKey) verdict {
	var ahead *backend.Member
	if k.behind {
		ahead = new(backend.Member)
	}
	pl, err := kit.PlaceOf(backend.Member{}, ahead, k.header(0).Stored())
	switch {
	case err != nil || protocol.BeingMoved(pl.First, k.header(0)):
		return joinsAnew
	case pl.First:
		return leadsFrom
	}
	return waitsOnFrom
}

// verdict is that of p, which needs both sides, as far as it knew when it joined from.
func (d *decisions) verdict(m *model, p, from, to int) verdict {
	v := d.place(&m.side[from], p, leadsBoth, waitsOnFrom)
	if v == leadsBoth {
		v = d.first(m, p, from, to)
	}
	return v
}

type sideKey struct {
	token uint8 // on the other side
	mSide
}

// own is p's member in a side that is as p finds it.
func (k sideKey) own() backend.Member {
	if i := k.find(me); i >= 0 {
		return member(k.line[i])
	}
	return backend.Member{}
}

// first is the verdict of p where it is first on from, whatever the record there says.
func (d *decisions) first(m *model, p, from, to int) verdict {
	return kept(d.takes, sideKey{m.side[from].token(0), m.side[to].as(p)}, func(k sideKey) verdict {
		choice, err := routes[1].Take(uint64(k.token), k.seen(1), k.own())
		if err != nil {
			return refuses
		}
		return choiceVerdicts[choice]
	})
}

// alone is the verdict of p where it uses the side alone, to which the election has moved.
func (d *decisions) alone(s *mSide, p int) verdict { return d.place(s, p, leadsTo, waitsOnTo) }

// lead is what p, which leads by both, does when it finds the target as t, and the source as
// it is. That it cannot seal is to go on.
func (d *decisions) lead(m *model, p, from int, t mSide) protocol.Choice {
	return kept(d.leads, sideKey{m.side[from].token(0), t.as(p)}, func(k sideKey) protocol.Choice {
		choice, err := routes[1].Lead(header.Header{Fence: uint64(k.token)}, k.seen(1), [2]backend.Member{{}, k.own()})
		if err != nil {
			return protocol.GoOn
		}
		return choice
	})
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

// settled is the view before those joined who are not pinned.
func (s *mSide) settled() mView {
	v := s.view()
	if v.n = 0; v.head != 0 {
		v.n = 1
	}
	return v
}

// line is a line of which the view may be.
func (v mView) line(side int) header.Line {
	l := header.Line{Version: 1, Header: v.header(side)}
	for i := range v.n {
		m := mMember{others, 200 + i}
		if i == 0 && v.head != 0 {
			m = mMember{nobody, v.head}
		}
		l.Members = append(l.Members, member(m))
	}
	return l
}

// The steps of an operator.
const (
	begin = iota
	cutover
	finish
	abort
)

type stepKey struct {
	step uint8
	to   uint8
	from mRecord
	view mView
}

// An mDecision is what an operator does next.
type mDecision struct {
	act    protocol.Act
	side   uint8   // of a write
	record mRecord // that is written
	gate   uint8   // position of the one that is opened
	no     bool    // it does nothing, as the step is refused, or has to wait
}

// step is what an operator does next who moves the election to a side and has seen the
// record of the source and the line of the target.
func (d *decisions) step(step uint8, to int, f mRecord, t mView) mDecision {
	return kept(d.steps, stepKey{step, uint8(to), f, t}, func(k stepKey) mDecision {
		to := int(k.to)
		var l protocol.Lines
		l[protocol.From] = header.Line{Version: 1, Header: k.from.header(1 - to)}
		l[protocol.To] = k.view.line(to)
		route := routes[to]
		decide := [...]func(protocol.Lines) (protocol.Request, error){
			begin:   func(l protocol.Lines) (protocol.Request, error) { return route.Begin(newID, l) },
			cutover: route.Cutover, finish: route.Finish, abort: route.Abort,
		}
		r, err := decide[k.step](l)
		if err != nil {
			return mDecision{no: true}
		}
		side := to
		if r.Act == protocol.Write && r.Side == protocol.From {
			side = 1 - to
		}
		return mDecision{act: r.Act, side: uint8(side), record: recordOf(r.Header, side), gate: uint8(r.Gate.Position)}
	})
}

// mayPin reports whether an operator pins its member at the position, as the side is.
func (s *mSide) mayPin(pos uint8) bool {
	l := s.seen(0)
	err := routes[0].MayPin(member(mMember{operator, pos}), l, l)
	if err != nil && !errors.Is(err, backend.ErrVersion) && !errors.Is(err, protocol.ErrRefused) {
		panic(err)
	}
	return err == nil
}

// aborted is the target's record t as an abort writes it that has read f on the source;
// false where that is to be decided anew.
func (d *decisions) aborted(f, t mRecord) (mRecord, bool) {
	r := kept(d.aborts, [2]mRecord{f, t}, func(k [2]mRecord) mDecision {
		h, ok := routes[1].AbortedOf(k[0].header(0), k[1].header(1))
		return mDecision{record: recordOf(h, 1), no: !ok}
	})
	return r.record, !r.no
}

// moved is the target's record t as the end of the cutover writes it that has read f on the
// source; false where there is nothing to end.
func (d *decisions) moved(f, t mRecord) (mRecord, bool) {
	if !f.sealed {
		return t, false // to save time: it is asked in every state
	}
	r := kept(d.moves, [2]mRecord{f, t}, func(k [2]mRecord) mDecision {
		h, ok := protocol.MovedOf(k[0].header(0), k[1].header(1))
		return mDecision{record: recordOf(h, 1), no: !ok}
	})
	return r.record, !r.no
}

// sealed is the source's record as the seal of the migration to t writes it.
func sealed(t mRecord) mRecord {
	return recordOf(protocol.SealOf(header.Header{}, t.header(1).Migration), 0)
}
