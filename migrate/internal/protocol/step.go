package protocol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// Lines are what a step has read: To's line first, and then From's. A step that writes To's record
// names the version that was read, so it is refused if anything has been done there since. From's
// line is newer than To's.
type Lines [2]header.Line

// An Act is what an operator does next, or a process that begins a migration or ends a cutover.
type Act uint8

// The acts.
const (
	Nothing  Act = iota // the step is done
	Wait                // somebody else must go on
	Write               // writes the Header of one side
	PutGate             // joins To's line, and pins its member with the Header as the gate
	OpenGate            // removes the Gate
	EndMove             // removes the gate, and writes what [MovedOf] returns
	Reopen              // writes To's record as it was, and then the Header to From's
	Touch               // writes From's record as it was, and then what [Route.AbortedOf] returns
)

// A Request is an act with what it needs. After it the step is decided anew, by other lines.
type Request struct {
	Act    Act
	Side   Side           // for Write
	Header header.Header  // for Write and PutGate; it replaces the header that was read
	Gate   backend.Member // for OpenGate, on Side
	Last   bool           // the step is done when this request is
}

// Begins reports whether the request begins a migration.
func (q Request) Begins() bool {
	return q.Act == PutGate || q.Act == Write && q.Side == To && q.Header.Migration.Step == StepBegun
}

// refused is the reason why a step cannot be taken as things are.
func refused(format string, args ...any) (Request, error) {
	return Request{}, fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Begin decides for an operator who begins the migration. id is its ID if it is a new one.
func (r Route) Begin(id string, l Lines) (Request, error) {
	from, to := l[From].Header, l[To]
	gate, stands := Gate(to)
	phase, err := r.Phase(from, to.Header)
	var sealed *backend.SealedError
	switch {
	case phase == Conflict || phase == Aliased:
		return Request{}, err
	case Gated(from):
		return refused("migration %s from %s to %s has not ended; finish or abort that", from.Migration.ID, from.Migration.From, from.Migration.To)
	case phase.HasMoved():
		return refused("it is on %s already", r.To)
	case phase.NeedsBoth() && stands:
		return Request{}, nil // begun already
	case phase.NeedsBoth():
		id = to.Header.Migration.ID // the gate was removed by hand
	case errors.As(err, &sealed) && from.Sealed == "":
		// The election went from To to a third coordinator, and perhaps from there to From. To is
		// sealed in any case; only what is on From can show whether From is the right one.
		if l[From].Version == backend.Absent && len(l[From].Members) == 0 {
			return refused("from %s it went to %s, and on %s nobody knows it", r.To, sealed.To, r.From)
		}
	case err != nil && phase != None:
		return Request{}, err
	case phase == None && (to.Header.Migration.Step == StepMoved || to.Header.Migration.Step == StepReopened) && (len(l[From].Members) == 0 || len(to.Members) > 0):
		// Nothing has moved it away since. An abort would seal it there. Who stands in line shows where it is in use.
		return refused("the election is on %s, as its record says: are they exchanged? If they are not, begin when somebody stands on %s, and nobody on %[1]s", r.To, r.From)
	case phase == None && to.Version != backend.Absent && l[From].Version == backend.Absent && len(l[From].Members) == 0:
		return refused("%s knows the election and %s does not: are they exchanged? If they are not, begin when somebody stands on %[2]s, or after: succession fence NAME --at-least N --url %[2]s", r.To, r.From)
	}
	if mig := to.Header.Migration; stands && !mig.Seal && mig.Step == StepAborted {
		// An abort may be about to take this member away, so it cannot be used as the gate.
		if len(to.Members) > 1 {
			return r.inTheWay(to.Members[1:])
		}
		return Request{Act: OpenGate, Side: To, Gate: gate}, nil
	}
	h := to.Header
	h.Sealed = ""
	h.Choice.Gate, h.Choice.Wish = 0, header.Wish{} // of who stood here before; the leader that comes would take them for its own
	h.Migration = header.Migration{ID: id, From: r.From, To: r.To, Step: StepBegun}
	if to.Header.Sealed != "" && len(to.Members) > 0 && to.Members[0].Pinned {
		if len(to.Members) > 1 {
			return refused("on %s these wait behind the seal: %s; stop them", r.To, Names(to.Members[1:]))
		}
		h.Migration.Gate, h.Migration.Seal = to.Members[0].Position, true
		return Request{Act: Write, Side: To, Header: h}, nil
	}
	if others := besides(to, backend.Member{}); len(others) > 0 {
		if i := slices.IndexFunc(others, func(m backend.Member) bool { return m.Pinned && m.Position == to.Header.Migration.Gate }); i >= 0 {
			// No member ever stands in front of a gate. If one does here, it has left while the
			// members were read one by one, as on ZooKeeper.
			return Request{}, fmt.Errorf("%w: %s is a gate by now", backend.ErrVersion, others[i].Key)
		}
		return r.inTheWay(others)
	}
	return Request{Act: PutGate, Header: h}, nil
}

func (r Route) inTheWay(others []backend.Member) (Request, error) {
	return refused("on %s these stand in line: %s; stop them, as nobody may lead there before the cutover", r.To, Names(others))
}

// MayPin returns nil if m may be pinned as the gate. before is To's line as it was read before m
// joined it, and now the line after that. If several put a gate at the same moment, only the first
// in line may.
func (r Route) MayPin(m backend.Member, before, now header.Line) error {
	if now.Version != before.Version {
		return backend.ErrVersion
	}
	if others := besides(now, m); len(others) > 0 {
		_, err := r.inTheWay(others)
		return err
	}
	if Index(now.Members, m) != 0 {
		return backend.ErrVersion
	}
	return nil
}

// Cutover decides for an operator who asks the leader to seal From. The step is done when the
// election has moved.
func (r Route) Cutover(l Lines) (Request, error) {
	phase, err := r.Phase(l[From].Header, l[To].Header)
	switch {
	case err != nil:
		return Request{}, err
	case phase == Sealed:
		return Request{Act: EndMove}, nil
	case phase == Moved:
		return Request{}, nil
	case phase == Aborted:
		return refused("the migration was aborted; begin again")
	case phase == Aborting:
		return refused("an abort is under way; abort again to finish it")
	case phase == Asked:
		return Request{Act: Wait}, nil
	}
	if _, stands := Gate(l[To]); !stands {
		return refused("the gate on %s is gone; begin again", r.To)
	}
	return writeStep(l, StepAsked), nil
}

func writeStep(l Lines, step string) Request {
	h := l[To].Header
	h.Migration.Step = step
	return Request{Act: Write, Side: To, Header: h}
}

// Finish decides for an operator who completes a cutover that was interrupted. The caller must see
// for itself that nobody stands on From.
func (r Route) Finish(l Lines) (Request, error) {
	phase, err := r.Phase(l[From].Header, l[To].Header)
	switch {
	case err != nil:
		return Request{}, err
	case phase == Sealed:
		return Request{Act: EndMove}, nil
	case phase != Moved:
		return refused("it has not moved: cut over first")
	}
	return Request{}, nil
}

// Abort decides for an operator who ends a migration that has not been cut over. It fails with
// [backend.ErrUnavailable] while members stand behind the gate.
func (r Route) Abort(l Lines) (Request, error) {
	phase, err := r.Phase(l[From].Header, l[To].Header)
	if r.outrun(l[From].Header, l[To].Header) {
		if phase, err = Aborted, nil; Gated(l[To].Header) {
			phase = Aborting
		}
	}
	mig := l[To].Header.Migration
	switch {
	case phase == Conflict:
		return r.withdraw(l)
	case phase == Aliased:
		return forget(l), nil
	case r.Opposed(l[From].Header, l[To].Header):
		return reopen(l), nil
	case err != nil:
		return Request{}, err
	case phase == Sealed:
		return Request{Act: EndMove}, nil // then it is refused
	case phase == Moved:
		return TooLate(r.To)
	case phase == Aborted:
		if gate, stands := Gate(l[From]); stands && l[From].Header.Migration.Step == StepReopened {
			return Request{Act: OpenGate, Side: From, Gate: gate}, nil
		}
		if gate, stands := Gate(l[To]); stands && !mig.Seal && mig.Step == StepAborted {
			return r.openGate(gate, l)
		}
		return Request{}, nil
	case mig.Step != StepAborting:
		return writeStep(l, StepAborting), nil
	}
	// A seal names the version of From's record that it replaces. If that changes after the step
	// above, no seal that is under way can be set.
	return Request{Act: Touch}, nil
}

// TooLate is why an abort is refused after the cutover, which it completes first if it was interrupted.
func TooLate(to string) (Request, error) {
	return refused("too late: it has moved to %s; the way back is a migration from there", to)
}

// forget decides for an operator who aborts a migration between two names of one coordinator. The
// gate goes although members wait behind it, because there is only one line.
func forget(l Lines) Request {
	if gate, stands := Gate(l[To]); stands {
		return Request{Act: OpenGate, Side: To, Gate: gate}
	}
	h := l[To].Header
	h.Migration = header.Migration{}
	return Request{Act: Write, Side: To, Header: h, Last: true}
}

// reopen decides for an operator who aborts a migration whose election is sealed on both
// coordinators, towards each other, as after a backup of one was restored: the election stays on
// From. If another operator does the opposite at the same moment, he writes the records in the
// opposite order, and both name the versions that they have read. So one of the two is refused.
// From's seal is a gate from then on, until it is taken away.
func reopen(l Lines) Request {
	h := l[From].Header
	h.Sealed, h.Migration = "", header.Migration{Step: StepReopened}
	if m := l[From].Members; len(m) > 0 && m[0].Pinned {
		h.Migration.Gate = m[0].Position
	}
	return Request{Act: Reopen, Side: From, Header: h}
}

// openGate removes the gate when nobody stands behind it.
func (r Route) openGate(gate backend.Member, l Lines) (Request, error) {
	if behind := l[To].Members[1:]; len(behind) > 0 {
		return Request{}, fmt.Errorf("%w: on %s these stand behind the gate: %s; stop those that run with it alone", backend.ErrUnavailable, r.To, Names(behind))
	}
	return Request{Act: OpenGate, Side: To, Gate: gate}, nil
}

// AbortedOf returns To's record as the abort writes it after it has touched From's record, which is
// from. It returns false if the election has been sealed meanwhile, or the opposite migration has
// begun: then the step must be decided anew.
func (r Route) AbortedOf(from, to header.Header) (header.Header, bool) {
	if from.Sealed != "" && !r.outrun(from, to) || Gated(from) {
		return to, false
	}
	to.Migration.Step, to.Sealed = StepAborted, to.Migration.From
	if from.Sealed != "" {
		to.Sealed = from.Sealed
	}
	return to, true
}

// outrun reports whether another migration has moved the election away from From. Then this one can
// only be aborted.
func (r Route) outrun(from, to header.Header) bool {
	m := to.Migration
	return from.Sealed != "" && !SameAddress(from.Sealed, r.To) && (Gated(to) || m.Step == StepAborted) && r.Accepts(m)
}

// Two migrations in opposite directions keep each other's clients from leading: a gate
// stands on either coordinator, and nobody leads. One of the two must be aborted, and never both,
// because then no gate would stand. A request that takes a gate away may be long on its way. So
// before that, a write to one record, on condition of its version, decides which one. It is the
// same record for both migrations.

// withdraw decides for an operator who aborts a migration whose From has the gate of the opposite
// one. Nobody leads by either, and the election was in use on neither coordinator, because both
// could be begun. So this migration is forgotten, and the other goes on.
func (r Route) withdraw(l Lines) (Request, error) {
	ours, theirs := l[To].Header.Migration, l[From].Header.Migration
	switch {
	case ours.Seal:
		return refused("its gate on %s is the seal of an earlier migration, so the election is in use; abort the one from %s to %s", r.To, r.To, r.From)
	case theirs.Step == StepWithdrawn || ours.Over != 0 && ours.Over == theirs.Gate:
		return refused("migration %s from %s to %s is being aborted; finish that", theirs.ID, theirs.From, theirs.To)
	case ours.Step != StepWithdrawn && theirs.Over != ours.Gate:
		return giveWay(l), nil
	}
	if gate, stands := Gate(l[To]); stands {
		return r.openGate(gate, l)
	}
	h := l[To].Header
	h.Migration = header.Migration{}
	return Request{Act: Write, Side: To, Header: h, Last: true}, nil
}

// giveWay writes down that of two opposed migrations the one to To is withdrawn. It writes that
// into the record of the migration whose From comes first in the alphabet, because no other address
// is written there while both gates stand.
func giveWay(l Lines) Request {
	ours, theirs := l[To].Header.Migration, l[From].Header.Migration
	if theirs.From < ours.From {
		h := l[From].Header
		h.Migration.Over = ours.Gate
		return Request{Act: Write, Side: From, Header: h}
	}
	return writeStep(l, StepWithdrawn)
}
