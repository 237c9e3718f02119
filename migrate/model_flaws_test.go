//go:build !race

package migrate_test

import (
	"strings"
	"testing"
)

// A flaw is something that the protocol forbids, to show that the model would notice.
type flaw struct {
	name string

	gateFirst    bool // the leader removes the gate before it seals
	targetFirst  bool // process 1 takes N before O
	noFence      bool // fences are not raised
	fenceOnce    bool // the fence is not looked at again before the seal
	hangsOnO     bool // after the seal the term hangs on O instead of N
	sealWithoutN bool // who leads by O alone seals as well
	leaveSeal    bool // resigning removes the member, pinned or not
	noTouch      bool // an abort does not touch the source's record
	unconfirmed  bool // the leader trusts what it reads of N, and does not write it before it seals
	unversioned  bool // the seal does not name the version of the record that it replaces
	eagerFinish  bool // the gate is removed when the seal has been asked for
	gateBehind   bool // a gate is put behind those who stand
	backTooSoon  bool // the way back begins before the migration is finished
	oneSided     bool // a term does not end with N
	abortKeepsN  bool // an abort opens N without sealing it
	abortNoSeal  bool // an abort of the way back removes the seal that was the gate
	early        bool // a composite leads by its source alone before a begin, where nobody stands on its target

	// What two opposed operators must not do.
	sourceFirst     bool // a step reads its source's line before its target's
	blindBegin      bool // who has put a gate does not look again
	unversionedGate bool // the gate does not name the version of the record that it replaces
	joinAndPin      bool // the gate is pinned without another look at the line
	ignoresConflict bool // a composite leads behind two gates
	abortsOther     bool // an abort in a conflict removes the other one's gate too
	abortsBlind     bool // an abort does not look for the other one's gate when it reads the record that it touches
	forgetsFirst    bool // an abort in a conflict forgets the migration before it removes the gate

	undecided         bool // an abort in a conflict removes the gate, and nothing has decided that it is this one
	decidesApart      bool // each abort in a conflict decides in the record of its own target
	unversionedChoice bool // what decides does not name the version of the record that it replaces
}

// Every rule of the protocol is needed: without it, the model finds what goes wrong.
func TestModelCatchesFlaws(t *testing.T) {
	b := bounds{joins: 4, crashes: 1, ids: 2, raise: true}
	for _, tt := range []struct {
		flaw flaw
		mix  []uint8
	}{
		{flaw{name: "the gate goes before the seal is there", gateFirst: true}, []uint8{both, newOnly, oldOnly}},
		{flaw{name: "one process takes N before O", targetFirst: true}, []uint8{both, both}},
		{flaw{name: "fences are not raised", noFence: true}, []uint8{both, oldOnly}},
		{flaw{name: "fences are not looked at before the seal", fenceOnce: true}, []uint8{both, newOnly}},
		{flaw{name: "after the seal the term hangs on O", hangsOnO: true}, []uint8{both, newOnly}},
		{flaw{name: "who leads by O alone seals", sealWithoutN: true}, []uint8{both, newOnly}},
		{flaw{name: "resigning takes the seal along", leaveSeal: true}, []uint8{both, foreignOld, newOnly}},
		{flaw{name: "an abort does not touch the record on O", noTouch: true}, []uint8{both}},
		{flaw{name: "the leader does not write N before it seals", unconfirmed: true}, []uint8{both}},
		{flaw{name: "the seal names no version", unversioned: true}, []uint8{both}},
		{flaw{name: "the gate goes when the cutover was asked for", eagerFinish: true}, []uint8{both, newOnly}},
		{flaw{name: "a gate is put behind those who stand", gateBehind: true}, []uint8{oldOnly, newOnly}},
		{flaw{name: "the way back begins too soon", backTooSoon: true}, []uint8{both, oldOnly, newOnly}},
		{flaw{name: "a term does not end with its place on N", oneSided: true}, []uint8{both, newOnly}},
		{flaw{name: "an abort does not seal N", abortKeepsN: true}, []uint8{both, newOnly, oldOnly}},
		{flaw{name: "aborting the way back takes the seal away", abortNoSeal: true}, []uint8{both, foreignOld, newOnly}},
		{flaw{name: "a composite leads before a begin", early: true}, []uint8{oldOnly, reverse}},
		{flaw{name: "opposed: a step reads its source before its target", sourceFirst: true}, []uint8{both}},
		{flaw{name: "opposed: begin does not look again", blindBegin: true}, nil},
		{flaw{name: "opposed: the gate names no version", unversionedGate: true}, nil},
		{flaw{name: "opposed: the gate is pinned without another look", joinAndPin: true}, []uint8{oldOnly, newOnly}},
		{flaw{name: "opposed: a composite leads behind two gates", ignoresConflict: true}, []uint8{both}},
		{flaw{name: "opposed: an abort removes the other one's gate too", abortsOther: true}, []uint8{oldOnly, newOnly}},
		{flaw{name: "opposed: an abort does not look for the other one's gate", abortsBlind: true}, nil},
		{flaw{name: "opposed: an abort forgets the gate before it is gone", forgetsFirst: true}, nil},
		{flaw{name: "opposed: an abort is not decided before the gate goes", undecided: true}, []uint8{oldOnly, newOnly}},
		{flaw{name: "opposed: each abort is decided in a record of its own", decidesApart: true}, []uint8{oldOnly, newOnly}},
		{flaw{name: "opposed: what decides names no version", unversionedChoice: true}, []uint8{oldOnly, newOnly}},
	} {
		t.Run(tt.flaw.name, func(t *testing.T) {
			b := b
			if strings.HasPrefix(tt.flaw.name, "opposed") {
				b = opposedBounds
			}
			bad, states := explore(tt.flaw, b, nil, tt.mix...)
			if bad == "" {
				t.Errorf("not caught in %d states", states)
			}
			t.Logf("after %d states: %.200s", states, bad)
		})
	}
}
