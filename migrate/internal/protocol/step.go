package protocol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
)

// Lines are what a step has read: To's line first, and then From's. A step that writes To's
// record names the version that was read, and so is refused where anything has been done
// there since. What was read of From is newer.
type Lines [2]backend.Line

// An Act is what an operator sends next, or a process that begins a migration or ends a
// cutover.
type Act uint8

// The acts.
const (
	Nothing  Act = iota // the step is done
	Wait                // it is for somebody else to go on
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
	Header backend.Header // for Write and PutGate; replaces the one that was read
	Gate   backend.Member // for OpenGate, on Side
	Last   bool           // the step is done when the request is
}

// Begins reports whether the request begins a migration.
func (q Request) Begins() bool {
	return q.Act == PutGate || q.Act == Write && q.Side == To && q.Header.Migration.Step == StepBegun
}

// refused is the reason why a step cannot be taken as things are.
func refused(format string, args ...any) (Request, error) {
	return Request{}, fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// Begin decides for who begins the migration, which is called id if it is a new one.
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
		// From To it went to a third coordinator, and perhaps from there to From. To is
		// sealed in any case; that From is the right one can be seen only from its traces.
		if l[From].Version == backend.Absent && len(l[From].Members) == 0 {
			return refused("from %s it went to %s, and on %s nobody knows it", r.To, sealed.To, r.From)
		}
	case err != nil && phase != None:
		return Request{}, err
	}
	if mig := to.Header.Migration; stands && !mig.Seal && mig.Step == StepAborted {
		// The request of an abort that takes it away may still be on its way: it is no gate.
		if len(to.Members) > 1 {
			return r.inTheWay(to.Members[1:])
		}
		return Request{Act: OpenGate, Side: To, Gate: gate}, nil
	}
	h := to.Header
	h.Sealed = ""
	h.Migration = backend.Migration{ID: id, From: r.From, To: r.To, Step: StepBegun}
	if to.Header.Sealed != "" && len(to.Members) > 0 && to.Members[0].Pinned {
		if len(to.Members) > 1 {
			return refused("on %s these wait behind the seal: %s; stop them", r.To, Names(to.Members[1:]))
		}
		h.Migration.Gate, h.Migration.Seal = to.Members[0].Position, true
		return Request{Act: Write, Side: To, Header: h}, nil
	}
	if others := besides(to, backend.Member{}); len(others) > 0 {
		if i := slices.IndexFunc(others, func(m backend.Member) bool { return m.Pinned && m.Position == to.Header.Migration.Gate }); i >= 0 {
			// Nobody ever stands in front of a gate: who does here has left while the members
			// were read one by one, as on ZooKeeper.
			return Request{}, fmt.Errorf("%w: %s is a gate by now", backend.ErrVersion, others[i].Key)
		}
		return r.inTheWay(others)
	}
	return Request{Act: PutGate, Header: h}, nil
}

func (r Route) inTheWay(others []backend.Member) (Request, error) {
	return refused("on %s these stand in line: %s; stop them, as nobody may lead there before the cutover", r.To, Names(others))
}

// MayPin returns nil if m, which has joined To's line after that was read as before, may
// be pinned as the gate, as the line is now. Of several who put a gate at the same moment
// the first in line does.
func (r Route) MayPin(m backend.Member, before, now backend.Line) error {
	if now.Version != before.Version {
		return backend.ErrVersion
	}
	if others := besides(now, m); len(others) > 0 {
		_, err := r.inTheWay(others)
		return err
	}
	if Index(now, m) != 0 {
		return backend.ErrVersion
	}
	return nil
}

// Cutover decides for who asks the leader to seal From. The step is done when the election
// has moved.
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

// Finish decides for who completes a cutover that was interrupted. That nobody stands on
// From any more is for the caller to see.
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

// Abort decides for who ends a migration that has not been cut over. It fails with
// [backend.ErrUnavailable] where the gate may go when those behind it have gone.
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
		return refused("too late: it has moved to %s; the way back is a migration from there", r.To)
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
	// A seal names the version of From's record that it replaces. When that has
	// changed, after the step above, no seal that is under way can be set any more.
	return Request{Act: Touch}, nil
}

// forget decides for who aborts a migration between two names of one coordinator: the gate goes, whoever
// waits behind it, as these stand in the only line that there is.
func forget(l Lines) Request {
	if gate, stands := Gate(l[To]); stands {
		return Request{Act: OpenGate, Side: To, Gate: gate}
	}
	h := l[To].Header
	h.Migration = backend.Migration{}
	return Request{Act: Write, Side: To, Header: h, Last: true}
}

// reopen decides for who aborts a migration whose election is sealed on both coordinators, towards each
// other, as after a backup of one was restored: it stays on From. Who says the opposite at the same
// moment writes the records in the opposite order, and each names the versions that it has read. So
// one of the two is refused. What was the seal is a gate from then on, until it is taken away.
func reopen(l Lines) Request {
	h := l[From].Header
	h.Sealed, h.Migration = "", backend.Migration{Step: StepReopened}
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

// AbortedOf returns To's record as the abort writes it after it has touched From's, which
// is from; false where the election has been sealed meanwhile, or the opposite migration
// has begun: then the step is to be decided anew.
func (r Route) AbortedOf(from, to backend.Header) (backend.Header, bool) {
	if from.Sealed != "" && !r.outrun(from, to) || Gated(from) {
		return to, false
	}
	to.Migration.Step, to.Sealed = StepAborted, to.Migration.From
	if from.Sealed != "" {
		to.Sealed = from.Sealed
	}
	return to, true
}

// outrun reports whether the election was moved from From by another migration than this
// one, which can only be aborted then.
func (r Route) outrun(from, to backend.Header) bool {
	m := to.Migration
	return from.Sealed != "" && !SameAddress(from.Sealed, r.To) && (Gated(to) || m.Step == StepAborted) && r.Accepts(m)
}

// Two migrations in opposite directions keep each other's clients from leading: a gate
// stands on either coordinator, and nobody leads. One of the two has to be aborted, and
// never both, or no gate would stand: an operator's request that takes a gate away may be
// long on its way. So which one is decided before, by a write to one record that names its
// version. It is the same record whichever of the two an operator aborts.

// withdraw decides for who aborts a migration whose From has the gate of the opposite one.
// Nobody leads by either, and the election was in use on neither coordinator, as both were
// begun: what was begun here is forgotten, and the other migration goes on.
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
	h.Migration = backend.Migration{}
	return Request{Act: Write, Side: To, Header: h, Last: true}, nil
}

// giveWay writes down that of two opposed migrations the one to To is withdrawn. Of the
// two records it writes that of the migration whose From comes first in the alphabet: as
// long as both gates stand nobody writes another address there.
func giveWay(l Lines) Request {
	ours, theirs := l[To].Header.Migration, l[From].Header.Migration
	if theirs.From < ours.From {
		h := l[From].Header
		h.Migration.Over = ours.Gate
		return Request{Act: Write, Side: From, Header: h}
	}
	return writeStep(l, StepWithdrawn)
}
