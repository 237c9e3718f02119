package protocol

import (
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// A Choice says what a process with both coordinators does next.
type Choice uint8

// The choices.
const (
	GoOn       Choice = iota // it leads by both, and nothing is asked of it
	Rejoin                   // the election is not here: it gives its members back and joins again
	StayOnFrom               // the migration was aborted: it leaves To and leads by From alone
	JoinTo                   // it is first on From and needs a member on To
	LostTo                   // its member on To has gone
	WaitOnTo                 // it waits for the member in front of its own on To
	RaiseFrom                // it raises From's fence, so that its token there is that on To
	RaiseTo                  // it raises To's fence, so that its token there is that on From
	LeadByBoth               // it leads
	Seal                     // it seals From
	SealedFrom               // From is sealed, perhaps by itself
)

// BeingMoved reports whether a member that is not first, in the election with this record, has to
// join again: it waits on the coordinator to which the election is about to move, and no seal tells
// it that.
func BeingMoved(first bool, h header.Header) bool { return !first && Gated(h) }

// Take decides for a process that is first on From, with the token, until it leads. m is its member
// on To, zero if it has none. If the process cannot lead before somebody has acted, Take fails with
// [ErrRefused] or an error of [Route.Phase].
func (r Route) Take(token uint64, to header.Line, m backend.Member) (Choice, error) {
	phase, err := r.PhaseByTo(to.Header) // From is not sealed: the process is first there
	switch {
	case err != nil:
		return 0, err
	case phase.HasMoved():
		return Rejoin, nil
	case phase == Aborted:
		return StayOnFrom, nil
	}
	if _, stands := Gate(to); !stands {
		return 0, fmt.Errorf("%w: the gate on %s is gone, though the migration goes on; begin it again", ErrRefused, r.To)
	}
	if m.Key == "" {
		return JoinTo, nil
	}
	switch i := Index(to.Members, m); {
	case i < 0:
		return LostTo, nil
	case i > 1:
		return WaitOnTo, nil
	case token < to.Token(m):
		return RaiseFrom, nil
	case to.Token(m) < token:
		return RaiseTo, nil
	}
	return LeadByBoth, nil
}

// Lead decides for a process that leads by both, with its two members own. From's record must have
// been read before To's line. If the process is asked to seal and cannot, Lead fails with
// [ErrRefused]. After Seal the process must first write To's record as it was, on condition of its
// version, and then seal From, on condition of the version of From's record: an abort writes To's
// record first, and then From's.
func (r Route) Lead(from header.Header, to header.Line, own [2]backend.Member) (Choice, error) {
	phase, err := r.PhaseByTo(to.Header)
	switch {
	case err != nil:
		return 0, err
	case from.Sealed != "":
		return SealedFrom, nil
	case phase == Aborted:
		return StayOnFrom, nil
	case phase != Asked:
		return GoOn, nil
	case !BehindGate(to, own[To]):
		return 0, fmt.Errorf("%w: it does not stand first behind the gate on %s", ErrRefused, r.To)
	}
	token, err := from.Token(own[From].Position)
	switch {
	case err != nil:
		return 0, err
	case to.Token(own[To]) < token:
		return RaiseTo, nil
	}
	return Seal, nil
}
