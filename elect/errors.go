package elect

import (
	"errors"
	"fmt"

	"github.com/succession-dev/succession/internal/again"
)

// ErrLost says that a term has ended and that its leader did not resign. In each error that
// matches it, errors.As finds a [*LostError].
var ErrLost = errors.New("leadership lost")

// ErrResigned is the cause of a term's context, and what [Term.Check] returns,
// after [Term.Resign].
var ErrResigned = errors.New("resigned")

// Why a term was lost, for use with errors.Is on a [LostError]. There are also
// [backend.ErrSessionEnded] and [backend.ErrSealed].
var (
	// ErrDeadline says that the coordinator did not confirm the session in time. It
	// may make another the leader soon.
	ErrDeadline = errors.New("no confirmation from the coordinator before the deadline")
	// ErrRemoved says that somebody else removed the member from the line.
	ErrRemoved = errors.New("an operator removed the member from the line")
	// ErrAsked says that an operator asked this leader to resign. The text of an error that wraps
	// it says who, and why.
	ErrAsked = errors.New("asked to resign")
)

// ErrStepDown is what a function of [Election.Run] returns to give leadership away: Run resigns, and joins
// again at the end of the line.
var ErrStepDown = errors.New("step down")

// ErrNotReady says that a candidate is not ready to lead; see [Options] Ready. In a [LostError] it
// says why the leader has handed over.
var ErrNotReady = errors.New("not ready")

// ErrPaused says that an operator has paused the election.
var ErrPaused = errors.New("the election is paused")

// ErrNotFirst says that somebody stands in front of a candidate that does not wait
// ([Election.TryCampaign]), or that a candidate does not lead now ([Term.Check] of no term).
var ErrNotFirst = errors.New("not first in line")

// ErrNoLeader says that nobody leads; see [State] Err.
var ErrNoLeader = errors.New("nobody leads")

// A LostError says which term was lost, and why. It is the cause of the term's context.
type LostError struct {
	Election string
	Token    uint64
	Err      error // why
}

// Error says which term was lost, and why.
func (e *LostError) Error() string {
	return fmt.Sprintf("%v of %s (token %d): %v", ErrLost, e.Election, e.Token, e.Err)
}

// Is reports whether target is [ErrLost].
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns the reason.
func (e *LostError) Unwrap() error { return e.Err }

// passing reports whether a campaign goes on after err. Candidates must not give up after such an
// error, because all of them would at the same time.
func passing(err error) bool { return again.Passing(err) || errors.Is(err, ErrDeadline) }
