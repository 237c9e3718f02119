package kit

import (
	"errors"

	"github.com/succession-dev/succession/backend"
)

// A Driver is the name of a driver: the scheme of its URLs, and the field Backend of its
// errors.
type Driver string

// Wrap returns err as a [backend.Error] of the operation op on the election or record called
// name, which may be empty. It returns err itself if that is nil or wrapped already.
func (d Driver) Wrap(op, name string, err error) error {
	var wrapped *backend.Error
	if err == nil || errors.As(err, &wrapped) {
		return err
	}
	return &backend.Error{Backend: string(d), Op: op, Name: name, Err: err}
}
