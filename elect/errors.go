package elect

import (
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// ErrLost is the end of a term that its holder did not ask for. Errors that match
// it are of type [*LostError].
var ErrLost = errors.New("leadership lost")

// ErrResigned is the cause of a term's context, and what [Term.Check] returns,
// after [Term.Resign].
var ErrResigned = errors.New("resigned")

// The reasons of a [LostError], beside [backend.ErrSessionEnded]. All are for use
// with errors.Is.
var (
	// ErrDeadline says that the coordinator did not confirm the session in time:
	// it may be about to hand leadership on.
	ErrDeadline = errors.New("no confirmation from the coordinator before the deadline")
	// ErrRemoved says that the member was removed from the line by somebody else.
	ErrRemoved = errors.New("an operator removed the member from the line")
	// ErrAsked says that somebody asked this leader to resign; see
	// [Election.AskToResign].
	ErrAsked = errors.New("asked to resign")
)

// ErrNoLeader is returned where a leader is needed and nobody stands in line.
var ErrNoLeader = errors.New("nobody leads")

// LostError is the cause of the context of a term that was lost.
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

// passing reports whether a campaign may go on after err: the coordinator may come
// back, a session or a place that was lost is replaced by a new one, and what stands in
// line and has no order was put there by a stranger, who may take it away. To give up
// for that would end every candidate at once. Who gives its place back as it cannot lead in
// time tries again. All other errors need somebody to act.
func passing(err error) bool {
	return errors.Is(err, backend.ErrUnavailable) ||
		errors.Is(err, backend.ErrSessionEnded) ||
		errors.Is(err, backend.ErrNotMember) ||
		errors.Is(err, backend.ErrLine) ||
		errors.Is(err, ErrDeadline) || errors.Is(err, backend.ErrVersion)
}
