package backend

import (
	"errors"
	"fmt"
)

// Errors of the contract, for use with errors.Is.
//
// Some pass by themselves, and [elect.Election.Run] then joins again: ErrSessionEnded,
// ErrUnavailable, ErrNotMember, ErrVersion and ErrLine. ErrTaken is an answer. The others come
// again until a person acts, or for [ErrClosed] and [ErrInvalid] the program.
//
// [elect.Election.Run]: https://pkg.go.dev/github.com/succession-dev/succession/elect#Election.Run
var (
	// ErrSessionEnded is returned by every call on a session that has ended. Another
	// one takes its place: see [Backend] Session. Of the others, such an error matches at most ErrReset, ErrClosed and ErrUnavailable: why the
	// session has ended says nothing of the call, which may have been carried out.
	ErrSessionEnded = errors.New("session ended")

	// ErrUnavailable says that the coordinator could not be reached, that it has no
	// quorum, or that its answer was lost. A write may have happened.
	ErrUnavailable = errors.New("coordinator unavailable")

	// ErrNotMember says that the member is not in line any more: it has left, its
	// session has ended, or an operator has removed it.
	ErrNotMember = errors.New("not in line any more")

	// ErrVersion says that a record does not have the version that the caller
	// named. Read it again.
	ErrVersion = errors.New("record has changed")

	// ErrSealed says that the election has moved to another coordinator;
	// [SealedError] says to which.
	ErrSealed = errors.New("election is sealed")

	// ErrReset says that the coordinator's log has gone back, as after a restore from
	// a backup: tokens would fall. Raise the fence, and restart the process.
	ErrReset = errors.New("coordinator was reset")

	// ErrDenied says that the coordinator refuses the credentials, or that they lack
	// a right that the operation needs.
	ErrDenied = errors.New("permission denied")

	// ErrInvalid says that an argument is not allowed, such as a name or a value that
	// some coordinator cannot keep.
	ErrInvalid = errors.New("invalid")

	// ErrLine says that the order of a line is not certain, because of an entry that a
	// foreign client has put there. It passes when that entry goes.
	ErrLine = errors.New("line cannot be put in order")

	// ErrTaken says that there is no item to claim: it does not stand any more, or another claim
	// for it stands in front.
	ErrTaken = errors.New("no free item")

	// ErrForeign says that a member stands in a line of another kind: it is no item of a queue, or
	// no claim. It comes again until somebody removes that member.
	ErrForeign = errors.New("foreign member")

	// ErrHeader says that the header of an election cannot be understood.
	ErrHeader = errors.New("the header of the election cannot be understood")

	// ErrClosed is returned by a backend after Close.
	ErrClosed = errors.New("backend is closed")
)

// A SealedError is an [ErrSealed] with the URL of the coordinator that the election
// has moved to.
type SealedError struct {
	To string
}

// Error says where the election went, and what to do.
func (e *SealedError) Error() string {
	return fmt.Sprintf("%v: it went to %s; run this process with that URL", ErrSealed, e.To)
}

// Is reports whether target is [ErrSealed].
func (e *SealedError) Is(target error) bool { return target == ErrSealed }

// An Error says which operation on a backend failed, as [io/fs.PathError] does for
// files.
type Error struct {
	Backend string // the kind of coordinator: "zookeeper", "local", ...
	Op      string // the operation: "join", "ahead", ...
	Name    string // the name of the election or record; may be empty
	Err     error
}

// Error names the backend, the operation and what it was about.
func (e *Error) Error() string {
	s := e.Backend + ": " + e.Op
	if e.Name != "" {
		s += " " + e.Name
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }
