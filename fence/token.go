package fence

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrStale says that a token was refused because the resource has seen a larger one: the
// sender is not the leader any more, and must stop. Errors that match it are of type
// [*StaleError].
var ErrStale = errors.New("stale token")

// ErrInvalid says that a value cannot be used as a token: text that is no number, 0, or a number
// that does not fit the resource.
var ErrInvalid = errors.New("invalid token")

// ErrMissing says that a request has no token.
var ErrMissing = errors.New("missing token")

// A StaleError says which token was refused.
type StaleError struct {
	Resource string // may be empty
	Token    uint64 // the token that was refused
	Largest  uint64 // the largest that the resource has seen; 0 if it was not read
}

// Error says which token was refused, and which was seen.
func (e *StaleError) Error() string {
	s := fmt.Sprintf("%v %d", ErrStale, e.Token)
	if e.Resource != "" {
		s += fmt.Sprintf(" for %q", e.Resource)
	}
	if e.Largest == 0 {
		return s + ": a larger one has been seen"
	}
	return s + fmt.Sprintf(": %d has been seen", e.Largest)
}

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// ParseToken returns the token that s has in decimal, as in SUCCESSION_TOKEN. It accepts
// what [strconv.FormatUint] makes of a token and nothing else: no sign, space or leading
// zero. Any other text is an [ErrInvalid].
func ParseToken(s string) (uint64, error) {
	token, err := strconv.ParseUint(s, 10, 64)
	if err != nil || strconv.FormatUint(token, 10) != s {
		return 0, fmt.Errorf("fence: %w %.40q: it is no number in decimal from 1 to 2^64-1", ErrInvalid, s)
	}
	return token, checkToken(token)
}

// checkToken refuses a token that no term has. Otherwise a program that has forgotten its token
// would pass until a leader comes.
func checkToken(token uint64) error {
	if token == 0 {
		return fmt.Errorf("fence: %w 0: every term has a larger one", ErrInvalid)
	}
	return nil
}
