package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// Errors that package migrate exports, which documents them.
var (
	ErrNotBegun = errors.New("no migration has begun")
	ErrOther    = errors.New("another migration is under way")
	ErrRefused  = errors.New("refused")
)

// ErrConflict is an ErrOther: two operators have begun to move the election in opposite directions
// at the same moment, and neither migration has been withdrawn yet.
var ErrConflict = fmt.Errorf("%w: the election was begun to be moved in opposite directions", ErrOther)

// The steps of a migration, in the record of the coordinator that the election moves to.
// The record of the other coordinator says only StepSealed.
const (
	StepBegun     = "begun"     // the gate stands
	StepAsked     = "asked"     // the leader is asked to seal
	StepAborting  = "aborting"  // the leader must not seal from now on
	StepAborted   = "aborted"   // the election stays where it was: this record is sealed
	StepWithdrawn = "withdrawn" // the opposite migration goes on, and this one must be forgotten
	StepMoved     = "moved"     // the gate is gone: the election is here
	StepSealed    = "sealed"    // the election has gone from here
	StepReopened  = "reopened"  // the election is here after all, and the seal must be taken away
)

// A Phase is how far the migration of an election is.
type Phase string

// The phases, in their order.
const (
	None      Phase = "none"
	Begun     Phase = "begun"
	Asked     Phase = "asked"
	Sealed    Phase = "sealed"
	Moved     Phase = "moved"
	Aborting  Phase = "aborting"
	Aborted   Phase = "aborted"
	Conflict  Phase = "conflict"
	Elsewhere Phase = "elsewhere"
	Aliased   Phase = "aliased"
)

// NeedsBoth reports whether a process leads only with a member on both coordinators.
func (p Phase) NeedsBoth() bool { return p == Begun || p == Asked || p == Aborting }

// HasMoved reports whether the election is on To, although the gate may still stand there.
func (p Phase) HasMoved() bool { return p == Sealed || p == Moved }

// Phase says where the election with these records is. In the phases None, Conflict, Aliased and
// Elsewhere, in which the process can neither lead nor wait, it also returns the reason.
func (r Route) Phase(from, to header.Header) (Phase, error) {
	m := to.Migration
	switch {
	case to.Sealed == "" && m.Step == StepMoved && SameAddress(m.From, r.From) && SameAddress(m.To, r.To):
		return Moved, nil
	case r.Opposed(from, to):
		return Elsewhere, fmt.Errorf("%w: the election is sealed on both coordinators, towards each other, as after a backup was restored; an abort reopens it on %s", backend.ErrHeader, r.From)
	case from.Sealed != "" && !SameAddress(from.Sealed, r.To):
		return Elsewhere, &backend.SealedError{To: from.Sealed}
	case from.Sealed != "" && Gated(to) && m.ID != "" && m.ID == from.Migration.ID: // without an ID there is nothing to end; see [MovedOf]
		return Sealed, nil
	case from.Sealed != "":
		return Moved, nil
	case to.Sealed != "" && !SameAddress(to.Sealed, r.From):
		return Elsewhere, &backend.SealedError{To: to.Sealed}
	case to.Sealed != "":
		return Aborted, nil
	case Gated(from) && Gated(to) && m.ID != "" && m == from.Migration:
		// No other migration has this ID, and the gate is one member: both records are one.
		return Aliased, fmt.Errorf("%w: its gate stands on %s and on %s, which are two names of one coordinator, so nobody leads; abort it", ErrOther, r.From, r.To)
	case Gated(from) && Gated(to) && SameAddress(from.Migration.From, r.To) && SameAddress(m.From, r.From):
		return Conflict, fmt.Errorf("%w: migration %s from %s to %s and migration %s from %s to %s; nobody leads until one of them is aborted",
			ErrConflict, m.ID, m.From, m.To, from.Migration.ID, from.Migration.From, from.Migration.To)
	case Gated(from):
		return Elsewhere, fmt.Errorf("%w: on %s stands the gate of migration %s from %s to %s; cut that over or abort it first, or run this process with its URLs",
			ErrOther, r.From, from.Migration.ID, from.Migration.From, from.Migration.To)
	case Gated(to) && m.Step == StepWithdrawn:
		return Conflict, fmt.Errorf("%w: migration %s from %s to %s is being aborted, as the opposite one goes on; abort it again", ErrConflict, m.ID, m.From, m.To)
	case Gated(to) && r.Accepts(m):
		return map[string]Phase{StepBegun: Begun, StepAsked: Asked, StepAborting: Aborting}[m.Step], nil
	case Gated(to):
		return Elsewhere, fmt.Errorf("%w: its gate on %s is of migration %s from %s to %s, and this process takes part in %s from %s to %s; finish or abort the former, or run this process with its URLs",
			ErrOther, r.To, m.ID, m.From, m.To, cmp.Or(r.ID, "one"), r.From, r.To)
	}
	return None, fmt.Errorf("%w from %s to %s; begin it, or run this process with the URL of the one where the election is", ErrNotBegun, r.From, r.To)
}

// Opposed reports whether the election is sealed on both coordinators, towards each other.
func (r Route) Opposed(from, to header.Header) bool {
	return from.Sealed != "" && to.Sealed != "" && SameAddress(from.Sealed, r.To) && SameAddress(to.Sealed, r.From)
}

// PhaseByTo is Phase as far as To's record alone tells, if From's record is not known. A process
// that knows that the election is not sealed on From also uses it.
func (r Route) PhaseByTo(to header.Header) (Phase, error) { return r.Phase(header.Header{}, to) }

// MovedByTo reports whether To's record alone says that the election has moved. Then
// From is not needed.
func (r Route) MovedByTo(to header.Header) bool {
	p, _ := r.PhaseByTo(to)
	return p.HasMoved()
}

// Gated reports whether h is the record of an election that is about to move here: a gate stands at
// the head of its line, or must be taken away.
func Gated(h header.Header) bool {
	return h.Sealed == "" && slices.Contains([]string{StepBegun, StepAsked, StepAborting, StepWithdrawn}, h.Migration.Step)
}

// SealOf returns From's record, which is h, as the seal of the migration writes it.
func SealOf(h header.Header, m header.Migration) header.Header {
	h.Sealed = m.To
	h.Migration = header.Migration{ID: m.ID, From: m.From, To: m.To, Step: StepSealed}
	return h
}

// MovedOf returns To's record as the end of the cutover writes it, once the gate is gone. from is
// the record that the seal wrote. It returns false if there is nothing to end.
func MovedOf(from, to header.Header) (header.Header, bool) {
	if from.Sealed == "" || from.Migration.ID == "" || !Gated(to) || to.Migration.ID != from.Migration.ID {
		return to, false
	}
	to.Migration.Step, to.Migration.Gate = StepMoved, 0
	// What the leader, who leads on, has noted of the candidates. A wish and the gate of a pause name members of From.
	to.Choice.Readiness = to.Choice.Readiness || from.Choice.Readiness
	to.Choice.Ranked = to.Choice.Ranked || from.Choice.Ranked
	to.Choice.Site = cmp.Or(from.Choice.Site, to.Choice.Site)
	to.Acknowledged = max(to.Acknowledged, from.Acknowledged)
	if from.Resign > to.Resign {
		to.Resign, to.Asked = from.Resign, from.Asked
	}
	return to, true
}
