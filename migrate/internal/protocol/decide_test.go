package protocol_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// The election of the tests moves from a to b.
var route = protocol.Route{From: "memory:a", To: "memory:b"}

func mig(step string, gate uint64) header.Migration {
	return header.Migration{ID: "m", From: route.From, To: route.To, Step: step, Gate: gate}
}

// opposite is a migration from b to a.
func opposite(step string, gate uint64) header.Migration {
	return header.Migration{ID: "o", From: route.To, To: route.From, Step: step, Gate: gate}
}

func moving(m header.Migration) header.Header { return header.Header{Migration: m} }

func sealed(to string, m header.Migration) header.Header {
	return header.Header{Sealed: to, Migration: m}
}

var (
	gate = backend.Member{Line: "e", Key: "gate", Position: 5, Pinned: true, Value: protocol.GateValue + "m"}
	seal = backend.Member{Line: "e", Key: "seal", Position: 5, Pinned: true}
	me   = backend.Member{Line: "e", Key: "me", Position: 7, Value: "web-1"}
	you  = backend.Member{Line: "e", Key: "you", Position: 8, Value: "web-2"}
)

func line(h header.Header, members ...backend.Member) header.Line {
	return header.Line{Header: h, Members: members, Version: 3}
}

// What a process that is first on From does, with the token 7, and its member on To.
func TestTake(t *testing.T) {
	higher := header.Header{Fence: 100, Migration: mig(protocol.StepBegun, 5)}
	for _, tt := range []struct {
		name  string
		to    header.Line
		m     backend.Member
		token uint64
		want  protocol.Choice
		err   error
	}{
		{"it has moved", line(moving(mig(protocol.StepMoved, 0)), me), me, 7, protocol.Rejoin, nil},
		{"it was aborted", line(sealed(route.From, mig(protocol.StepAborted, 0))), me, 7, protocol.StayOnFrom, nil},
		{"another migration", line(moving(header.Migration{ID: "x", From: "memory:c", To: route.To, Step: protocol.StepBegun, Gate: 5}), gate, me), me, 7, 0, protocol.ErrOther},
		{"nothing has begun", line(header.Header{}, me), me, 7, 0, protocol.ErrNotBegun},
		{"the gate is gone", line(moving(mig(protocol.StepBegun, 5)), me), me, 7, 0, protocol.ErrRefused},
		{"the gate is not pinned", line(moving(mig(protocol.StepBegun, 5)), backend.Member{Line: "e", Key: "gate", Position: 5}, me), me, 7, 0, protocol.ErrRefused},
		{"another is pinned", line(moving(mig(protocol.StepBegun, 5)), backend.Member{Line: "e", Key: "x", Position: 4, Pinned: true}, me), me, 7, 0, protocol.ErrRefused},
		{"no gate is named", line(moving(mig(protocol.StepBegun, 0)), backend.Member{Line: "e", Key: "x", Pinned: true}, me), me, 7, 0, protocol.ErrRefused},
		{"no member there", line(moving(mig(protocol.StepBegun, 5)), gate), backend.Member{}, 7, protocol.JoinTo, nil},
		{"the member has gone", line(moving(mig(protocol.StepBegun, 5)), gate, you), me, 7, protocol.LostTo, nil},
		{"its key is that of another", line(moving(mig(protocol.StepBegun, 5)), gate, backend.Member{Line: "e", Key: "me", Position: 9}), me, 7, protocol.LostTo, nil},
		{"its position is that of another", line(moving(mig(protocol.StepBegun, 5)), gate, backend.Member{Line: "e", Key: "x", Position: 7}), me, 7, protocol.LostTo, nil},
		{"it stands in another line", line(moving(mig(protocol.StepBegun, 5)), gate, backend.Member{Line: "f", Key: "me", Position: 7}), me, 7, protocol.LostTo, nil},
		{"one is in front", line(moving(mig(protocol.StepBegun, 5)), gate, backend.Member{Line: "e", Key: "x", Position: 6}, me), me, 7, protocol.WaitOnTo, nil},
		{"the same token", line(moving(mig(protocol.StepBegun, 5)), gate, me), me, 7, protocol.LeadByBoth, nil},
		{"while it is asked", line(moving(mig(protocol.StepAsked, 5)), gate, me), me, 7, protocol.LeadByBoth, nil},
		{"while it is aborted", line(moving(mig(protocol.StepAborting, 5)), gate, me), me, 7, protocol.LeadByBoth, nil},
		{"a larger token there", line(higher, gate, me), me, 7, protocol.RaiseFrom, nil},
		{"a larger token here", line(moving(mig(protocol.StepBegun, 5)), gate, me), me, 8, protocol.RaiseTo, nil},
	} {
		got, err := route.Take(tt.token, tt.to, tt.m)
		if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// What a process that leads by both does.
func TestLead(t *testing.T) {
	asked := moving(mig(protocol.StepAsked, 5))
	own := [2]backend.Member{protocol.From: {Line: "e", Key: "mine", Position: 7}, protocol.To: me}
	for _, tt := range []struct {
		name string
		from header.Header
		to   header.Line
		want protocol.Choice
		err  error
	}{
		{"begun", header.Header{}, line(moving(mig(protocol.StepBegun, 5)), gate, me), protocol.GoOn, nil},
		{"aborting", header.Header{}, line(moving(mig(protocol.StepAborting, 5)), gate, me), protocol.GoOn, nil},
		{"aborted", header.Header{}, line(sealed(route.From, mig(protocol.StepAborted, 0)), me), protocol.StayOnFrom, nil},
		{"another migration", header.Header{}, line(header.Header{}, me), 0, protocol.ErrNotBegun},
		{"it has sealed", sealed(route.To, mig(protocol.StepSealed, 0)), line(asked, gate, me), protocol.SealedFrom, nil},
		{"asked", header.Header{}, line(asked, gate, me), protocol.Seal, nil},
		{"asked, with a smaller token there", header.Header{Fence: 1}, line(asked, gate, me), protocol.RaiseTo, nil},
		{"asked, without a gate", header.Header{}, line(asked, me), 0, protocol.ErrRefused},
		{"asked, and another stands in place of the gate", header.Header{}, line(asked, you, me), 0, protocol.ErrRefused},
		{"asked, and alone behind the gate is another", header.Header{}, line(asked, gate, you), 0, protocol.ErrRefused},
		{"asked, and nobody is behind the gate", header.Header{}, line(asked, gate), 0, protocol.ErrRefused},
		{"asked, and without a token", header.Header{Fence: backend.MaxFence + 1}, line(asked, gate, me), 0, backend.ErrHeader},
	} {
		got, err := route.Lead(tt.from, tt.to, own)
		if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// Where the election with two records is.
func TestPhase(t *testing.T) {
	same := mig(protocol.StepBegun, 5)
	other := header.Migration{ID: "x", From: "memory:c", To: route.To, Step: protocol.StepBegun, Gate: 5}
	for _, tt := range []struct {
		name     string
		from, to header.Header
		want     protocol.Phase
		err      error
		says     string
	}{
		{"nothing", header.Header{}, header.Header{}, protocol.None, protocol.ErrNotBegun, "from memory:a to memory:b"},
		{"begun", header.Header{}, moving(same), protocol.Begun, nil, ""},
		{"asked", header.Header{}, moving(mig(protocol.StepAsked, 5)), protocol.Asked, nil, ""},
		{"aborting", header.Header{}, moving(mig(protocol.StepAborting, 5)), protocol.Aborting, nil, ""},
		{"withdrawn", header.Header{}, moving(mig(protocol.StepWithdrawn, 5)), protocol.Conflict, protocol.ErrConflict, "abort it again"},
		{"sealed", sealed(route.To, mig(protocol.StepSealed, 0)), moving(mig(protocol.StepAsked, 5)), protocol.Sealed, nil, ""},
		{"sealed by an earlier one", sealed(route.To, header.Migration{ID: "earlier", Step: protocol.StepSealed}), moving(mig(protocol.StepAsked, 5)), protocol.Moved, nil, ""},
		{"sealed by nobody's cutover", sealed(route.To, header.Migration{Step: protocol.StepSealed}), moving(header.Migration{Step: protocol.StepAsked, Gate: 5}), protocol.Moved, nil, ""},
		{"moved", sealed(route.To, mig(protocol.StepSealed, 0)), moving(mig(protocol.StepMoved, 0)), protocol.Moved, nil, ""},
		{"moved, says To alone", header.Header{}, moving(mig(protocol.StepMoved, 0)), protocol.Moved, nil, ""},
		{"moved from elsewhere", header.Header{}, moving(header.Migration{ID: "x", From: "memory:c", To: route.To, Step: protocol.StepMoved}), protocol.None, protocol.ErrNotBegun, ""},
		{"moved elsewhere", header.Header{}, moving(header.Migration{ID: "x", From: route.From, To: "memory:c", Step: protocol.StepMoved}), protocol.None, protocol.ErrNotBegun, ""},
		{"moved, and away", sealed(route.To, mig(protocol.StepSealed, 0)), sealed("memory:c", mig(protocol.StepMoved, 0)), protocol.Moved, nil, ""},
		{"away from From", sealed("memory:c", header.Migration{}), header.Header{}, protocol.Elsewhere, backend.ErrSealed, "memory:c"},
		{"moved, and away, says To alone", header.Header{}, sealed("memory:c", mig(protocol.StepMoved, 0)), protocol.Elsewhere, backend.ErrSealed, "memory:c"},
		{"after the way there", moving(opposite(protocol.StepMoved, 0)), moving(same), protocol.Begun, nil, ""},
		{"the other way, after a seal", moving(opposite(protocol.StepBegun, 6)), moving(mig(protocol.StepSealed, 0)), protocol.Elsewhere, protocol.ErrOther, "stands the gate"},
		{"a step of From on To", header.Header{}, moving(mig(protocol.StepSealed, 0)), protocol.None, protocol.ErrNotBegun, ""},
		{"away from From, and To sealed towards it", sealed("memory:c", header.Migration{}), sealed(route.From, header.Migration{}), protocol.Elsewhere, backend.ErrSealed, "memory:c"},
		{"away from To", header.Header{}, sealed("memory:c", header.Migration{}), protocol.Elsewhere, backend.ErrSealed, "memory:c"},
		{"aborted", header.Header{}, sealed(route.From, mig(protocol.StepAborted, 0)), protocol.Aborted, nil, ""},
		{"sealed towards each other", sealed(route.To, header.Migration{}), sealed(route.From, header.Migration{}), protocol.Elsewhere, backend.ErrHeader, "both"},
		{"two names of one", moving(same), moving(same), protocol.Aliased, protocol.ErrOther, "two names"},
		{"the same without an ID", moving(header.Migration{From: route.From, To: route.To, Step: protocol.StepBegun, Gate: 5}),
			moving(header.Migration{From: route.From, To: route.To, Step: protocol.StepBegun, Gate: 5}), protocol.Elsewhere, protocol.ErrOther, "stands the gate"},
		{"in opposite directions", moving(opposite(protocol.StepBegun, 6)), moving(same), protocol.Conflict, protocol.ErrConflict, "opposite"},
		{"from To to a third", moving(header.Migration{ID: "x", From: "memory:c", To: route.From, Step: protocol.StepBegun, Gate: 6}), moving(same), protocol.Elsewhere, protocol.ErrOther, "stands the gate"},
		{"opposite to another", moving(opposite(protocol.StepBegun, 6)), moving(other), protocol.Elsewhere, protocol.ErrOther, "stands the gate"},
		{"begun the other way", moving(opposite(protocol.StepBegun, 6)), header.Header{}, protocol.Elsewhere, protocol.ErrOther, "stands the gate"},
		{"another to To", header.Header{}, moving(other), protocol.Elsewhere, protocol.ErrOther, "takes part in one"},
	} {
		got, err := route.Phase(tt.from, tt.to)
		if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
}

// Which migrations a process takes part in, and which addresses mean one coordinator.
func TestAccepts(t *testing.T) {
	m := header.Migration{ID: "abc-def", From: "etcd://h1:1,h2:2/x", To: "zookeeper://h3:3/y"}
	for r, want := range map[protocol.Route]bool{
		{From: "etcd://h2:2,h1:1/x/", To: "zookeeper://h3:3/y"}:                 true,
		{From: "etcd://h2:2,h1:1/x", To: "zookeeper://h3:3/y", ID: "abc"}:       true,
		{From: "etcd://h2:2,h1:1/x", To: "zookeeper://h3:3/y", ID: "abc-def"}:   true,
		{From: "etcd://h2:2,h1:1/x", To: "zookeeper://h3:3/y", ID: "ab"}:        false,
		{From: "etcd://h2:2,h1:1/x", To: "zookeeper://h3:3/y", ID: "other"}:     false,
		{From: "etcd://h2:2,h1:1/z", To: "zookeeper://h3:3/y"}:                  false,
		{From: "etcd://h2:2/x", To: "zookeeper://h3:3/y"}:                       false,
		{From: "consul://h2:2,h1:1/x", To: "zookeeper://h3:3/y"}:                false,
		{From: "etcd://h2:2,h1:1/x", To: "zookeeper://h3:4/y"}:                  false,
		{From: "etcd://h2:2,h1:1/x?namespace=n", To: "zookeeper://h3:3/y"}:      false,
		{From: "etcd://h2:2,h1:1/x?user=somebody", To: "zookeeper://h3:3/y"}:    true,
		{From: "etcd://h2:2,h1:1/x", To: "zookeeper://h3:3/y?session=5s"}:       true,
		{From: "etcd://h2:2,h1:1/x", To: "no address%"}:                         false,
		{From: "etcd://h2:2,h1:1/x", To: "zookeeper://h3:3/y?dc=elsewhere"}:     false,
		{From: "etcd://h2:2,h1:1/x", To: "zookeeper://h3:3/y?partition=beside"}: false,
	} {
		if got := r.Accepts(m); got != want {
			t.Errorf("%+v: %t, want %t", r, got, want)
		}
	}
	if protocol.SameAddress("no address%", "etcd://h1:1/x") || !protocol.SameAddress("no address%", "no address%") {
		t.Error("what is no address is the same only as itself")
	}
}

// What an operator does who begins.
func TestBegin(t *testing.T) {
	write := header.Header{Migration: mig(protocol.StepBegun, 0)}
	overSeal := mig(protocol.StepBegun, 5)
	overSeal.Seal = true
	bySeal := mig(protocol.StepAborted, 5)
	bySeal.Seal = true
	for _, tt := range []struct {
		name     string
		from, to header.Line
		want     protocol.Request
		err      error
		says     string
	}{
		{"nothing is there", header.Line{Version: backend.Absent}, header.Line{Version: backend.Absent}, protocol.Request{Act: protocol.PutGate, Header: write}, nil, ""},
		{"a pause and a wish are still noted", line(header.Header{}), line(header.Header{Choice: header.Choice{Gate: 3, Wish: header.Wish{Position: 4, Until: 7}}}), protocol.Request{Act: protocol.PutGate, Header: write}, nil, ""},
		{"begun", line(header.Header{}), line(moving(mig(protocol.StepBegun, 5)), gate), protocol.Request{}, nil, ""},
		{"the gate was removed", line(header.Header{}), line(moving(header.Migration{ID: "old", From: route.From, To: route.To, Step: protocol.StepBegun, Gate: 5})),
			protocol.Request{Act: protocol.PutGate, Header: moving(header.Migration{ID: "old", From: route.From, To: route.To, Step: protocol.StepBegun})}, nil, ""},
		{"moved", line(header.Header{}), line(moving(mig(protocol.StepMoved, 0))), protocol.Request{}, protocol.ErrRefused, "already"},
		{"moved there from a third", line(header.Header{}), line(moving(header.Migration{ID: "x", From: "memory:c", To: route.To, Step: protocol.StepMoved})), protocol.Request{}, protocol.ErrRefused, "is on memory:b"},
		{"moved there from a third, and somebody stands on From", line(header.Header{}, me), line(header.Header{Fence: 9, Migration: header.Migration{ID: "x", From: "memory:c", To: route.To, Step: protocol.StepMoved}}), protocol.Request{Act: protocol.PutGate, Header: header.Header{Fence: 9, Migration: write.Migration}}, nil, ""},
		{"moved there from a third, and they stand on both", line(header.Header{}, me), line(moving(header.Migration{ID: "x", From: "memory:c", To: route.To, Step: protocol.StepMoved}), you), protocol.Request{}, protocol.ErrRefused, "nobody on memory:b"},
		{"reopened there, and somebody stands on From", line(header.Header{}, me), line(moving(header.Migration{Step: protocol.StepReopened})), protocol.Request{Act: protocol.PutGate, Header: write}, nil, ""},
		{"reopened there", line(header.Header{}), line(moving(header.Migration{Step: protocol.StepReopened})), protocol.Request{}, protocol.ErrRefused, "is on memory:b"},
		{"only To knows it", header.Line{Version: backend.Absent}, line(header.Header{}), protocol.Request{}, protocol.ErrRefused, "exchanged"},
		{"only To knows it, and somebody stands on From", header.Line{Version: backend.Absent, Members: []backend.Member{me}}, line(header.Header{}), protocol.Request{Act: protocol.PutGate, Header: write}, nil, ""},
		{"the other way", line(moving(opposite(protocol.StepBegun, 6))), line(header.Header{}), protocol.Request{}, protocol.ErrRefused, "has not ended"},
		{"both ways", line(moving(opposite(protocol.StepBegun, 6))), line(moving(mig(protocol.StepBegun, 5))), protocol.Request{}, protocol.ErrConflict, ""},
		{"two names", line(moving(mig(protocol.StepBegun, 5))), line(moving(mig(protocol.StepBegun, 5))), protocol.Request{}, protocol.ErrOther, "two names"},
		{"another to To", line(header.Header{}), line(moving(header.Migration{ID: "x", From: "memory:c", To: route.To, Step: protocol.StepBegun, Gate: 5}), gate), protocol.Request{}, protocol.ErrOther, ""},
		{"From is sealed", line(sealed("memory:c", header.Migration{})), line(header.Header{}), protocol.Request{}, backend.ErrSealed, ""},
		{"To was left for a third, and nobody knows From", header.Line{Version: backend.Absent}, line(sealed("memory:c", header.Migration{}), seal), protocol.Request{}, protocol.ErrRefused, "nobody knows it"},
		{"To was left for a third, and somebody stands on From", header.Line{Version: backend.Absent, Members: []backend.Member{me}}, line(sealed("memory:c", header.Migration{}), seal),
			protocol.Request{Act: protocol.Write, Side: protocol.To, Header: moving(overSeal)}, nil, ""},
		{"To was left for a third, and From has a record", line(header.Header{}), line(sealed("memory:c", header.Migration{}), seal),
			protocol.Request{Act: protocol.Write, Side: protocol.To, Header: moving(overSeal)}, nil, ""},
		{"To was left for From", line(header.Header{}), line(sealed(route.From, header.Migration{}), seal), protocol.Request{Act: protocol.Write, Side: protocol.To, Header: moving(overSeal)}, nil, ""},
		{"behind the seal they wait", line(header.Header{}), line(sealed(route.From, header.Migration{}), seal, me), protocol.Request{}, protocol.ErrRefused, "web-1"},
		{"the seal was removed", line(header.Header{}), line(sealed(route.From, header.Migration{})), protocol.Request{Act: protocol.PutGate, Header: write}, nil, ""},
		{"the seal was removed, and one stands", line(header.Header{}), line(sealed(route.From, header.Migration{}), me), protocol.Request{}, protocol.ErrRefused, "web-1"},
		{"they stand on To", line(header.Header{}), line(header.Header{}, me, you), protocol.Request{}, protocol.ErrRefused, "web-1 (me), web-2 (you)"},
		{"aborted, and the gate stands", line(header.Header{}), line(sealed(route.From, mig(protocol.StepAborted, 5)), gate), protocol.Request{Act: protocol.OpenGate, Side: protocol.To, Gate: gate}, nil, ""},
		{"aborted, and they stand behind the gate", line(header.Header{}), line(sealed(route.From, mig(protocol.StepAborted, 5)), gate, me), protocol.Request{}, protocol.ErrRefused, "web-1"},
		{"aborted, and its gate is a seal", line(header.Header{}), line(sealed(route.From, bySeal), seal), protocol.Request{Act: protocol.Write, Side: protocol.To, Header: moving(overSeal)}, nil, ""},
		{"another is about to put a gate", line(header.Header{}), line(header.Header{}, backend.Member{Line: "e", Key: "x", Position: 5, Value: protocol.GateValue + "x"}), protocol.Request{Act: protocol.PutGate, Header: write}, nil, ""},
		{"another is pinned", line(header.Header{}), line(header.Header{}, gate), protocol.Request{}, protocol.ErrRefused, "gate"},
		{"asked already", line(header.Header{}), line(moving(mig(protocol.StepAsked, 5)), gate), protocol.Request{}, nil, ""},
		{"being aborted", line(header.Header{}), line(moving(mig(protocol.StepAborting, 5)), gate), protocol.Request{}, nil, ""},
		{"sealed by a cutover", line(sealed(route.To, mig(protocol.StepSealed, 0))), line(moving(mig(protocol.StepAsked, 5)), gate), protocol.Request{}, protocol.ErrRefused, "already"},
		{"To was left for a third while it was asked", line(header.Header{}), line(sealed("memory:c", mig(protocol.StepAsked, 5)), gate), protocol.Request{Act: protocol.Write, Side: protocol.To, Header: moving(overSeal)}, nil, ""},
		{"aborted, and the gate is gone", line(header.Header{}), line(sealed(route.From, mig(protocol.StepAborted, 5))), protocol.Request{Act: protocol.PutGate, Header: write}, nil, ""},
		{"one stands where a gate was", line(header.Header{}), line(moving(header.Migration{Gate: 8}), you), protocol.Request{}, protocol.ErrRefused, "web-2"},
	} {
		got, err := route.Begin("m", protocol.Lines{tt.from, tt.to})
		if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %+v, %v; want %+v, %v", tt.name, got, err, tt.want, tt.err)
		}
		if begins := tt.err == nil && (tt.want.Act == protocol.PutGate || tt.want.Act == protocol.Write); got.Begins() != begins {
			t.Errorf("%s: it begins: %t", tt.name, got.Begins())
		}
	}
	for _, q := range []protocol.Request{
		{Act: protocol.Write, Side: protocol.From, Header: write}, {Act: protocol.Write, Side: protocol.To, Header: moving(mig(protocol.StepAsked, 5))}, {Act: protocol.OpenGate, Side: protocol.To, Header: write},
	} {
		if q.Begins() {
			t.Errorf("%+v begins a migration", q)
		}
	}
}

// Who may pin a member as the gate.
func TestMayPin(t *testing.T) {
	joining := backend.Member{Line: "e", Key: "mine", Position: 6, Value: protocol.GateValue + "m"}
	rival := backend.Member{Line: "e", Key: "other", Position: 5, Value: protocol.GateValue + "x"}
	before := line(header.Header{})
	later := line(header.Header{}, joining)
	later.Version = 4
	for name, tt := range map[string]struct {
		now  header.Line
		want error
	}{
		"alone":               {line(header.Header{}, joining), nil},
		"before a rival":      {line(header.Header{}, joining, rival), nil},
		"behind a rival":      {line(header.Header{}, rival, joining), backend.ErrVersion},
		"with a candidate":    {line(header.Header{}, joining, me), protocol.ErrRefused},
		"the record is newer": {later, backend.ErrVersion},
		"it has gone":         {line(header.Header{}), backend.ErrVersion},
	} {
		if err := route.MayPin(joining, before, tt.now); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// What an operator does who cuts over, finishes or aborts.
func TestSteps(t *testing.T) {
	asked, aborting := moving(mig(protocol.StepAsked, 5)), moving(mig(protocol.StepAborting, 5))
	withdrawn := moving(mig(protocol.StepWithdrawn, 5))
	over := opposite(protocol.StepBegun, 6)
	over.Over = 5
	bySeal := mig(protocol.StepBegun, 5)
	bySeal.Seal = true
	oursOver := mig(protocol.StepBegun, 5)
	oursOver.Over = 6
	oursOld, withdrawnOld := oursOver, moving(oursOver)
	oursOld.Over, withdrawnOld.Migration.Over, withdrawnOld.Migration.Step = 99, 99, protocol.StepWithdrawn
	reopened := backend.Member{Line: "e", Key: "seal", Position: 6, Pinned: true}
	movedHeader := sealed(route.To, mig(protocol.StepSealed, 0))
	none := protocol.Request{}
	cutover := func(l protocol.Lines) (protocol.Request, error) { return route.Cutover(l) }
	finish := func(l protocol.Lines) (protocol.Request, error) { return route.Finish(l) }
	abort := func(l protocol.Lines) (protocol.Request, error) { return route.Abort(l) }
	for _, tt := range []struct {
		name     string
		step     func(protocol.Lines) (protocol.Request, error)
		from, to header.Line
		want     protocol.Request
		err      error
		says     string
	}{
		{"cut over", cutover, line(header.Header{}), line(moving(mig(protocol.StepBegun, 5)), gate), protocol.Request{Act: protocol.Write, Side: protocol.To, Header: asked}, nil, ""},
		{"cut over without a gate", cutover, line(header.Header{}), line(moving(mig(protocol.StepBegun, 5))), none, protocol.ErrRefused, "gone"},
		{"cut over twice", cutover, line(header.Header{}), line(asked, gate), protocol.Request{Act: protocol.Wait}, nil, ""},
		{"cut over what is sealed", cutover, line(movedHeader), line(asked, gate), protocol.Request{Act: protocol.EndMove}, nil, ""},
		{"cut over what has moved", cutover, line(movedHeader), line(moving(mig(protocol.StepMoved, 0))), none, nil, ""},
		{"cut over what was aborted", cutover, line(header.Header{}), line(sealed(route.From, mig(protocol.StepAborted, 0))), none, protocol.ErrRefused, "was aborted"},
		{"cut over what is being aborted", cutover, line(header.Header{}), line(aborting, gate), none, protocol.ErrRefused, "abort again"},
		{"cut over nothing", cutover, line(header.Header{}), line(header.Header{}), none, protocol.ErrNotBegun, ""},

		{"finish what is sealed", finish, line(movedHeader), line(asked, gate), protocol.Request{Act: protocol.EndMove}, nil, ""},
		{"finish what has moved", finish, line(movedHeader), line(moving(mig(protocol.StepMoved, 0))), none, nil, ""},
		{"finish what has begun", finish, line(header.Header{}), line(moving(mig(protocol.StepBegun, 5)), gate), none, protocol.ErrRefused, "cut over first"},
		{"finish nothing", finish, line(header.Header{}), line(header.Header{}), none, protocol.ErrNotBegun, ""},

		{"abort", abort, line(header.Header{}), line(asked, gate), protocol.Request{Act: protocol.Write, Side: protocol.To, Header: aborting}, nil, ""},
		{"abort further", abort, line(header.Header{}), line(aborting, gate), protocol.Request{Act: protocol.Touch}, nil, ""},
		{"abort nothing", abort, line(header.Header{}), line(header.Header{}), none, protocol.ErrNotBegun, ""},
		{"abort what is sealed", abort, line(movedHeader), line(asked, gate), protocol.Request{Act: protocol.EndMove}, nil, ""},
		{"abort what has moved", abort, line(movedHeader), line(moving(mig(protocol.StepMoved, 0))), none, protocol.ErrRefused, "too late"},
		{"abort what was aborted", abort, line(header.Header{}), line(sealed(route.From, mig(protocol.StepAborted, 0))), none, nil, ""},
		{"abort, and the gate stands", abort, line(header.Header{}), line(sealed(route.From, mig(protocol.StepAborted, 5)), gate), protocol.Request{Act: protocol.OpenGate, Side: protocol.To, Gate: gate}, nil, ""},
		{"abort, and one stands behind the gate", abort, line(header.Header{}), line(sealed(route.From, mig(protocol.StepAborted, 5)), gate, me), none, backend.ErrUnavailable, "web-1"},
		{"abort, and the gate is a seal", abort, line(header.Header{}), line(sealed(route.From, header.Migration{ID: "m", From: route.From, To: route.To, Step: protocol.StepAborted, Gate: 5, Seal: true}), seal), none, nil, ""},
		{"abort what was reopened", abort, line(moving(header.Migration{Step: protocol.StepReopened, Gate: 6}), reopened), line(sealed(route.From, mig(protocol.StepAborted, 0))),
			protocol.Request{Act: protocol.OpenGate, Side: protocol.From, Gate: reopened}, nil, ""},
		{"abort what another has outrun", abort, line(sealed("memory:c", header.Migration{})), line(asked, gate), protocol.Request{Act: protocol.Write, Side: protocol.To, Header: aborting}, nil, ""},
		{"abort further what another has outrun", abort, line(sealed("memory:c", header.Migration{})), line(aborting, gate), protocol.Request{Act: protocol.Touch}, nil, ""},
		{"aborted what another has outrun", abort, line(sealed("memory:c", header.Migration{})), line(sealed("memory:c", mig(protocol.StepAborted, 0))), none, nil, ""},
		{"abort where another has moved it", abort, line(sealed("memory:c", header.Migration{})), line(header.Header{}), none, backend.ErrSealed, ""},
		{"abort where another has moved it, and a third is under way", abort, line(sealed("memory:c", header.Migration{})),
			line(moving(header.Migration{ID: "x", From: "memory:c", To: route.To, Step: protocol.StepBegun, Gate: 5}), gate), none, backend.ErrSealed, ""},
		{"abort what has moved, and moved again", abort, line(sealed("memory:c", header.Migration{})), line(moving(mig(protocol.StepMoved, 0))), none, protocol.ErrRefused, "too late"},
		{"aborted, and a gate on From is another's", abort, line(moving(header.Migration{Step: protocol.StepMoved, Gate: 6}), reopened), line(sealed(route.From, mig(protocol.StepAborted, 0))), none, nil, ""},
		{"reopened, and the seal is gone", abort, line(moving(header.Migration{Step: protocol.StepReopened, Gate: 6})), line(sealed(route.From, mig(protocol.StepAborted, 0))), none, nil, ""},
		{"sealed towards From by a cutover", abort, line(header.Header{}), line(sealed(route.From, mig(protocol.StepSealed, 5)), gate), none, nil, ""},

		{"abort between two names", abort, line(moving(mig(protocol.StepBegun, 5)), gate, me), line(moving(mig(protocol.StepBegun, 5)), gate, me), protocol.Request{Act: protocol.OpenGate, Side: protocol.To, Gate: gate}, nil, ""},
		{"abort between two names, without a gate", abort, line(moving(mig(protocol.StepBegun, 5)), me), line(moving(mig(protocol.StepBegun, 5)), me), protocol.Request{Act: protocol.Write, Side: protocol.To, Last: true}, nil, ""},
		{"abort where both are sealed", abort, line(sealed(route.To, mig(protocol.StepSealed, 0)), reopened), line(sealed(route.From, header.Migration{})),
			protocol.Request{Act: protocol.Reopen, Side: protocol.From, Header: moving(header.Migration{Step: protocol.StepReopened, Gate: 6})}, nil, ""},
		{"abort where both are sealed, and the seal was removed", abort, line(sealed(route.To, mig(protocol.StepSealed, 0)), me), line(sealed(route.From, header.Migration{})),
			protocol.Request{Act: protocol.Reopen, Side: protocol.From, Header: moving(header.Migration{Step: protocol.StepReopened})}, nil, ""},
		{"abort where both are sealed, and nobody stands", abort, line(sealed(route.To, mig(protocol.StepSealed, 0))), line(sealed(route.From, header.Migration{})),
			protocol.Request{Act: protocol.Reopen, Side: protocol.From, Header: moving(header.Migration{Step: protocol.StepReopened})}, nil, ""},

		{"withdraw", abort, line(moving(opposite(protocol.StepBegun, 6))), line(moving(mig(protocol.StepBegun, 5)), gate), protocol.Request{Act: protocol.Write, Side: protocol.To, Header: withdrawn}, nil, ""},
		{"withdraw further", abort, line(moving(opposite(protocol.StepBegun, 6))), line(withdrawn, gate), protocol.Request{Act: protocol.OpenGate, Side: protocol.To, Gate: gate}, nil, ""},
		{"withdraw with one behind the gate", abort, line(moving(opposite(protocol.StepBegun, 6))), line(withdrawn, gate, me), none, backend.ErrUnavailable, "web-1"},
		{"withdraw without a gate", abort, line(moving(opposite(protocol.StepBegun, 6))), line(withdrawn), protocol.Request{Act: protocol.Write, Side: protocol.To, Last: true}, nil, ""},
		{"withdraw what the other is over", abort, line(moving(over)), line(moving(mig(protocol.StepBegun, 5)), gate), protocol.Request{Act: protocol.OpenGate, Side: protocol.To, Gate: gate}, nil, ""},
		{"withdraw what stands on a seal", abort, line(moving(opposite(protocol.StepBegun, 6))), line(moving(bySeal), seal), none, protocol.ErrRefused, "in use"},
		{"withdraw while the other is withdrawn", abort, line(moving(opposite(protocol.StepWithdrawn, 6))), line(moving(mig(protocol.StepBegun, 5)), gate), none, protocol.ErrRefused, "being aborted"},
		{"withdraw what is over the other", abort, line(moving(opposite(protocol.StepBegun, 6))), line(moving(oursOver), gate), none, protocol.ErrRefused, "being aborted"},
		{"withdraw after the other is gone", abort, line(header.Header{}), line(withdrawn, gate), protocol.Request{Act: protocol.OpenGate, Side: protocol.To, Gate: gate}, nil, ""},
		{"withdraw what was over an earlier one", abort, line(moving(opposite(protocol.StepBegun, 6))), line(moving(oursOld), gate), protocol.Request{Act: protocol.Write, Side: protocol.To, Header: withdrawnOld}, nil, ""},
	} {
		got, err := tt.step(protocol.Lines{tt.from, tt.to})
		if got != tt.want || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %+v, %v; want %+v, %v", tt.name, got, err, tt.want, tt.err)
		}
	}
	// The route the other way writes into the record of the migration whose From comes first.
	back := protocol.Route{From: route.To, To: route.From}
	from, to := line(moving(mig(protocol.StepBegun, 5)), gate), line(moving(opposite(protocol.StepBegun, 6)), reopened)
	h := from.Header
	h.Migration.Over = 6
	if got, err := back.Abort(protocol.Lines{from, to}); err != nil || got != (protocol.Request{Act: protocol.Write, Side: protocol.From, Header: h}) {
		t.Errorf("withdraw the other way: %+v, %v", got, err)
	}
}

// The records that the steps write.
func TestRecords(t *testing.T) {
	began := moving(mig(protocol.StepAborting, 5))
	for _, tt := range []struct {
		name     string
		from, to header.Header
		sealed   string
		ok       bool
	}{
		{"aborted", header.Header{}, began, route.From, true},
		{"sealed meanwhile", sealed(route.To, mig(protocol.StepSealed, 0)), began, "", false},
		{"outrun", sealed("memory:c", header.Migration{}), began, "memory:c", true},
		{"the other way", moving(opposite(protocol.StepBegun, 6)), began, "", false},
	} {
		got, ok := route.AbortedOf(tt.from, tt.to)
		if ok != tt.ok || ok && (got.Sealed != tt.sealed || got.Migration.Step != protocol.StepAborted) {
			t.Errorf("%s: %+v, %t", tt.name, got, ok)
		}
	}
	asked := moving(mig(protocol.StepAsked, 5))
	asked.Acknowledged, asked.Resign, asked.Asked = 3, 4, "there"
	from := protocol.SealOf(header.Header{Acknowledged: 7, Resign: 8, Asked: "here"}, asked.Migration)
	if from.Sealed != route.To || from.Migration != (header.Migration{ID: "m", From: route.From, To: route.To, Step: protocol.StepSealed}) {
		t.Errorf("the seal is %+v", from)
	}
	got, ok := protocol.MovedOf(from, asked)
	if !ok || got.Migration.Step != protocol.StepMoved || got.Migration.Gate != 0 || got.Acknowledged != 7 || got.Resign != 8 || got.Asked != "here" {
		t.Errorf("moved: %+v, %t", got, ok)
	}
	asked.Acknowledged, asked.Resign = 9, 8
	from.Choice = header.Choice{Readiness: true, Site: "north", Wish: header.Wish{Key: "m", Position: 7}, Gate: 3}
	asked.Choice = header.Choice{Ranked: true, Site: "south"} // of when the election was last there
	if got, _ := protocol.MovedOf(from, asked); got.Choice != (header.Choice{Readiness: true, Ranked: true, Site: "north"}) {
		t.Errorf("who is to lead is %+v", got.Choice)
	}
	if got, _ := protocol.MovedOf(from, asked); got.Acknowledged != 9 || got.Resign != 8 || got.Asked != "there" {
		t.Errorf("moved, with newer numbers there: %+v", got)
	}
	for name, tt := range map[string]struct{ from, to header.Header }{
		"not sealed":        {header.Header{Migration: from.Migration}, asked},
		"by no migration":   {sealed(route.To, header.Migration{}), moving(header.Migration{Step: protocol.StepAsked})},
		"moved already":     {from, moving(mig(protocol.StepMoved, 0))},
		"another migration": {from, moving(header.Migration{ID: "x", From: route.From, To: route.To, Step: protocol.StepAsked})},
	} {
		if got, ok := protocol.MovedOf(tt.from, tt.to); ok || got != tt.to {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
	if !protocol.BeingMoved(false, asked) || protocol.BeingMoved(true, asked) || protocol.BeingMoved(false, header.Header{}) {
		t.Error("who waits where an election is about to move joins again, and nobody else")
	}
}

func TestPhases(t *testing.T) {
	for _, p := range []protocol.Phase{protocol.None, protocol.Begun, protocol.Asked, protocol.Sealed, protocol.Moved, protocol.Aborting, protocol.Aborted, protocol.Conflict, protocol.Elsewhere, protocol.Aliased} {
		both, moved := p == protocol.Begun || p == protocol.Asked || p == protocol.Aborting, p == protocol.Sealed || p == protocol.Moved
		if p.NeedsBoth() != both || p.HasMoved() != moved {
			t.Errorf("%s: %t, %t", p, p.NeedsBoth(), p.HasMoved())
		}
	}
	if !route.MovedByTo(moving(mig(protocol.StepMoved, 0))) || route.MovedByTo(moving(mig(protocol.StepBegun, 5))) {
		t.Error("To's record says that the election has moved, or not")
	}
	if protocol.Gated(sealed("memory:c", mig(protocol.StepBegun, 5))) || !protocol.Gated(moving(mig(protocol.StepBegun, 5))) {
		t.Error("a gate stands only where the election has not gone from")
	}
}
