//go:build !race

package migrate_test

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// The model explores every interleaving of the steps of a migration, as doc.go
// describes them. One transition is one request at one coordinator. It is about what
// coordinators and processes do to each other, so it has no time: that a session ends at
// its coordinator only after its owner's deadline (law L6) is one transition, which ends
// the term too. A coordinator that cannot be reached is one at which nothing happens
// for a while, which every interleaving includes. It has no goroutines, in which the race detector could find anything.
//
// What a composite and an operator do next is decided by the functions of package protocol
// that they call themselves (model_protocol_test.go). What the model still says in its own
// words, and so may say wrongly:
//
//   - what a coordinator does with a request, as package backend demands of every driver;
//   - in which order a composite and an operator send the requests of one decision, and what
//     they read before: joining, raising a fence, the two writes of the leader who seals,
//     those of an abort, the two steps of a cutover's end, and a gate that is joined, looked
//     at and pinned;
//   - when a term begins and ends, and that Leave of a seal does nothing.
//
// For the order a real composite is asked, too (model_code_test.go): each line and record of
// the two sides that any composite finds in any state that can be reached is shown to one,
// which stands there as that one does. It must wait, join, raise a fence to the same number,
// lead with the same token, refuse, or give its members back, as the model's does. What is
// not compared: steps of operators, the cutover of a leader (leading, pin), and what happens
// between two requests of one call, which in the model is a state of its own.

// The modes of processes.
const (
	oldOnly = iota
	newOnly
	both
	reverse
	foreignOld
	foreignNew
	modes
)

var modeNames = [modes]string{"old", "new", "both", "reverse", "foreign-old", "foreign-new"}

// The steps of a migration in the record of its target, and the roles that a
// composite takes when it joins.
const (
	stepNone = iota
	stepBegun
	stepAsked
	stepAborting
	stepAborted
	stepWithdrawn
	stepMoved
	stepSealed
)

const (
	procs    = 3
	operator = procs     // owner of a gate that is not pinned yet
	nobody   = procs + 1 // owner of what is pinned
	places   = 6
)

type mMember struct{ owner, pos uint8 } // owner nobody: pinned

// An mSide is an election on one coordinator: its line and its record.
type mSide struct {
	line  [places]mMember
	n     uint8
	next  uint8 // position of who joins next
	fence uint8
	mRecord
}

// An mRecord is what the record says about migrations.
type mRecord struct {
	sealed bool // towards the other side
	target bool // the record's migration comes here; else it goes away from here
	id     uint8
	step   uint8
	gate   uint8
	seal   bool  // the gate was a seal before
	over   uint8 // position of the gate of the opposite migration that is to be aborted
}

// An mProc is a process.
type mProc struct {
	mode    uint8
	dead    bool
	closing bool  // its session has ended on one side, and must end on the other
	alone   uint8 // 1+side that it uses alone, as it found when it joined; 0 for both
	lead    uint8 // bit set of the sides that its term hangs on
	token   uint8
	read    bool // has read the source's record
	ready   bool // and, after it, written the target's, which asks for the seal, as it was
	found   bool // has read that it needs both, and is about to join; see operators
}

type model struct {
	side    [2]mSide
	proc    [procs]mProc
	max     uint8 // the largest token so far
	begun   bool  // some migration has begun
	raised  bool  // an operator has raised the fence
	touched bool  // the operator aborts, and has touched the source's record since
	crashes uint8
	ids     uint8
	op      [2]mOp // by the side that they move the election to
	home    uint8  // 1+side where the election is in use, if it is; see operators
}

// bounds keep the model finite.
type bounds struct {
	joins   uint8 // positions on each side
	crashes uint8
	ids     uint8 // migrations begun
	raise   bool  // an operator raises the fence of O once
	opposed bool  // two operators move the election in opposite directions
}

type explorer struct {
	f    flaw
	d    *decisions
	b    bounds
	seen map[model]struct{}
	todo []model
	bad  string

	code *compared          // what is compared with the code; nil is nothing
	met  map[situation]bool // that have been compared

	mended map[model]bool // what mends has found
	tidy   bool           // one operator at a time: see mends
}

func (s *mSide) find(owner int) int {
	for i := range s.n {
		if s.line[i].owner == uint8(owner) {
			return int(i)
		}
	}
	return -1
}

func (s *mSide) remove(i int) {
	copy(s.line[i:], s.line[i+1:s.n])
	s.n--
	s.line[s.n] = mMember{}
}

func (s *mSide) gateIndex() int {
	if s.target && s.gate != 0 && s.n > 0 && s.line[0].owner == nobody && s.line[0].pos == s.gate {
		return 0
	}
	return -1
}

func (s *mSide) token(i int) uint8 { return s.fence + s.line[i].pos }

// behind reports whether p stands first behind the gate of a migration that comes
// here and has not been decided.
func (s *mSide) behind(p int) bool {
	return s.gated() && s.gateIndex() == 0 && s.n > 1 && s.line[1].owner == uint8(p)
}

func (r mRecord) gated() bool {
	return r.target && (r.step == stepBegun || r.step == stepAsked || r.step == stepAborting || r.step == stepWithdrawn)
}

// wrote is called when a side's record has been written: who has read it before
// cannot seal by it.
func (e *explorer) wrote(m *model, side int) {
	for p := range m.proc {
		if e.f.unversioned {
			break
		}
		if f, _, ok := m.proc[p].sides(); ok && f == side {
			m.proc[p].read, m.proc[p].ready = false, false
		}
	}
	if m.side[side].target {
		m.touched = false
	}
	for i := range m.op {
		for _, r := range []*mReq{&m.op[i].next, &m.op[i].late} {
			r.old[side] = r.names(side, i)
		}
	}
}

// sides returns where a composite comes from and goes to.
func (p *mProc) sides() (from, to int, ok bool) {
	switch p.mode {
	case both:
		return 0, 1, true
	case reverse:
		return 1, 0, true
	}
	return 0, 0, false
}

// home returns 1+side where the election is when p leads by the sides on.
func (p *mProc) home(on uint8) uint8 {
	if from, _, ok := p.sides(); ok && on == 3 {
		return uint8(1 + from)
	}
	return on // one side
}

// uses returns the side that p uses alone.
func (p *mProc) uses() (side int, ours, ok bool) {
	switch p.mode {
	case oldOnly:
		return 0, true, true
	case newOnly:
		return 1, true, true
	case foreignOld:
		return 0, false, true
	case foreignNew:
		return 1, false, true
	}
	return int(p.alone) - 1, true, p.alone > 0
}

// judge says what a composite does: 1+side for one alone, 0 for both, -1 to refuse.
func (e *explorer) judge(m *model, from, to int) int {
	switch phase := e.d.phase(m.side[from].mRecord, m.side[to].mRecord); {
	case phase.HasMoved():
		return 1 + to
	case phase == protocol.Aborted:
		return 1 + from
	case phase.NeedsBoth():
		return 0
	case phase == protocol.None && e.f.early && m.side[to].n == 0:
		return 1 + from
	case phase == protocol.Conflict && e.f.ignoresConflict:
		return 0
	}
	return -1
}

func (e *explorer) add(m model) {
	if _, known := e.seen[m]; !known {
		e.seen[m] = struct{}{}
		e.todo = append(e.todo, m)
	}
}

func (e *explorer) fail(format string, args ...any) {
	if e.bad == "" {
		e.bad = fmt.Sprintf(format, args...)
	}
}

// leads lets p lead, and checks the guarantees.
func (e *explorer) leads(m model, p int, on, token uint8, ours bool) {
	for q := range m.proc {
		if m.proc[q].lead != 0 {
			e.fail("two leaders: process %d (%s) and process %d (%s)\n%+v", q, modeNames[m.proc[q].mode], p, modeNames[m.proc[p].mode], m)
		}
	}
	m.proc[p].lead = on
	if e.b.opposed {
		m.home = m.proc[p].home(on)
	}
	if ours {
		if token <= m.max {
			e.fail("process %d (%s) leads with token %d after %d\n%+v", p, modeNames[m.proc[p].mode], token, m.max, m)
		}
		m.proc[p].token, m.max = token, token
	}
	e.add(m)
}

// join adds a member of owner at the end of the side's line.
func (e *explorer) join(m *model, side, owner int) bool {
	s := &m.side[side]
	if s.next > e.b.joins || s.n == places {
		return false
	}
	s.line[s.n] = mMember{uint8(owner), s.next}
	s.n++
	s.next++
	return true
}

// leave removes what p itself may remove.
func (m *model) leave(side, p int) {
	if i := m.side[side].find(p); i >= 0 {
		m.side[side].remove(i)
	}
}

// gone ends the part that p has played, once it stands nowhere any more.
func (m *model) gone(p int) {
	q := &m.proc[p]
	if m.side[0].find(p) >= 0 || m.side[1].find(p) >= 0 || q.lead != 0 {
		return
	}
	*q = mProc{mode: q.mode, dead: q.dead}
}

// explore returns what is wrong with the protocol for processes of these modes, or where
// the code does something else, if that is compared, and the number of states.
func explore(f flaw, b bounds, code *compared, mix ...uint8) (string, int) {
	var m model
	for side := range m.side {
		m.side[side].next = 1
	}
	m.side[0].next = 2 // so that sums differ in the beginning
	for p := range m.proc {
		m.proc[p].mode = modes
		if p < len(mix) {
			m.proc[p].mode = mix[p]
		}
	}
	e := &explorer{f: f, d: newDecisions(), b: b, seen: make(map[model]struct{}), code: code, met: make(map[situation]bool)}
	e.add(m)
	for len(e.todo) > 0 && e.bad == "" {
		m := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		if b.opposed {
			e.check(m)
		} else if why := e.recover(m); why != "" {
			e.fail("nobody can finish: %s\n%+v", why, m)
		}
		if m.idle() && e.stuck(m) {
			e.fail("nobody ever leads\n%+v", m)
		}
		if why := e.code.state(e, &m); why != "" {
			e.fail("%s", why)
		}
		e.next(m)
	}
	return e.bad, len(e.seen)
}

// A mix is what one exploration is of.
type mix struct {
	bounds
	modes []uint8
}

func (x mix) String() string {
	names := make([]string, 0, procs)
	for _, mode := range x.modes {
		names = append(names, modeNames[mode])
	}
	return fmt.Sprintf("%s,joins=%d", strings.Join(names, "+"), x.joins)
}

// explores explores each mix, several at the same time, and compares what is found with the
// code.
func explores(t *testing.T, mixes []mix) {
	code := &compared{done: make(map[situation]bool)}
	var total atomic.Int64
	// No more at a time than there are processors: each needs memory, and waits for nothing.
	processors := make(chan struct{}, runtime.GOMAXPROCS(0))
	t.Cleanup(func() { // when the parallel ones have ended
		t.Logf("%d states of %d mixes; %d situations were compared with the code", total.Load(), len(mixes), len(code.done))
		if len(code.done) == 0 {
			t.Error("nothing was compared")
		}
	})
	for _, x := range mixes {
		t.Run(x.String(), func(t *testing.T) {
			t.Parallel()
			processors <- struct{}{}
			defer func() { <-processors }()
			bad, states := explore(flaw{}, x.bounds, code, x.modes...)
			total.Add(int64(states))
			if bad != "" {
				t.Error(bad)
			}
		})
	}
}

var wholeModel = flag.Bool("whole-model", false, "TestModel: three processes, too; TestModelOpposed: two")

func TestModel(t *testing.T) {
	t.Parallel()
	var mixes []mix
	for a := uint8(0); a < modes; a++ {
		one := bounds{joins: 5, crashes: 2, ids: 3, raise: true}
		two := bounds{joins: 4, crashes: 2, ids: 3}
		mixes = append(mixes, mix{one, []uint8{a}})
		for b := a; b < modes; b++ {
			mixes = append(mixes, mix{two, []uint8{a, b}})
			for c := b; c < modes && *wholeModel; c++ {
				mixes = append(mixes, mix{bounds{joins: 3, crashes: 1, ids: 2}, []uint8{a, b, c}})
			}
		}
	}
	explores(t, mixes)
}
