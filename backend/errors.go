package backend

import (
	"errors"
	"fmt"
)

// Errors of the contract, for use with errors.Is. [ErrSessionEnded], [ErrUnavailable],
// [ErrNotMember] and [ErrLine] may pass, and a candidate goes on after them; all others
// need somebody to act.
var (
	// ErrSessionEnded is returned by every call on a session that has ended.
	ErrSessionEnded = errors.New("session ended")

	// ErrUnavailable says that the coordinator could not be reached, has no
	// quorum, or that its answer was lost. A write may or may not have happened.
	ErrUnavailable = errors.New("coordinator unavailable")

	// ErrNotMember says that the member is not in line any more: it left, or an
	// operator removed it.
	ErrNotMember = errors.New("not in line any more")

	// ErrVersion says that a record does not have the version that was asked for.
	ErrVersion = errors.New("record has changed")

	// ErrSealed says that the election has moved; see [SealedError].
	ErrSealed = errors.New("election is sealed")

	// ErrReset says that the coordinator's log has gone back: it was rebuilt or
	// restored from a backup, so tokens would fall.
	ErrReset = errors.New("coordinator was reset")

	// ErrDenied says that the coordinator refuses the credentials, or a right
	// that the operation needs.
	ErrDenied = errors.New("permission denied")

	// ErrInvalid says that an argument is not possible, such as a name or a value
	// that not every coordinator can keep.
	ErrInvalid = errors.New("invalid")

	// ErrLine says that a line holds members whose order is not certain. It passes
	// when whoever put them there takes them away.
	ErrLine = errors.New("line cannot be put in order")

	// ErrHeader says that an election's own record cannot be understood.
	ErrHeader = errors.New("election record is damaged")

	// ErrClosed is returned by a backend after Close.
	ErrClosed = errors.New("backend is closed")
)

// SealedError is [ErrSealed] with the address of the coordinator that the
// election went to.
type SealedError struct {
	To string
}

// Error says where the election went, and what to do.
func (e *SealedError) Error() string {
	return fmt.Sprintf("%v: it went to %s; run this process with that URL", ErrSealed, e.To)
}

// Is reports whether target is [ErrSealed].
func (e *SealedError) Is(target error) bool { return target == ErrSealed }

// Error is the error of one operation on a backend, in the manner of
// [io/fs.PathError].
type Error struct {
	Backend string // the kind of coordinator: "zookeeper", "local", ...
	Op      string // the operation: "join", "ahead", ...
	Name    string // the election or record; may be empty
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
