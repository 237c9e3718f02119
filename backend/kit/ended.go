package kit

import (
	"errors"

	"github.com/succession-dev/succession/backend"
)

// SessionEnded returns the error of a session that has ended because of why. It matches [backend.ErrSessionEnded], and of the other errors
// of the contract at most ErrReset, ErrClosed and ErrUnavailable. Why a session has ended was mostly the answer to another request than that
// of the caller, which may have been carried out: that the other one was denied, for example, says nothing of this one. The text has why.
func SessionEnded(why error) error {
	if e, ok := why.(*ended); ok {
		return e
	}
	if why == nil {
		why = backend.ErrSessionEnded
	}
	return &ended{why}
}

type ended struct{ why error }

func (e *ended) Error() string {
	if errors.Is(e.why, backend.ErrSessionEnded) {
		return e.why.Error()
	}
	return backend.ErrSessionEnded.Error() + ": " + e.why.Error()
}

func (e *ended) Is(target error) bool {
	switch target {
	case backend.ErrSessionEnded:
		return true
	case backend.ErrReset, backend.ErrClosed, backend.ErrUnavailable:
		return errors.Is(e.why, target)
	}
	return false
}
