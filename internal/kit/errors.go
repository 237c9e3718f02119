package kit

import (
	"errors"

	"github.com/succession-dev/succession/backend"
)

// A Driver is the name of a kind of coordinator: the scheme of its URLs, and the Backend
// of its errors.
type Driver string

// Wrap returns err as the error of an operation on the election or record called name,
// which may be empty. It passes on nil, and an error that was wrapped before.
func (d Driver) Wrap(op, name string, err error) error {
	var wrapped *backend.Error
	if err == nil || errors.As(err, &wrapped) {
		return err
	}
	return &backend.Error{Backend: string(d), Op: op, Name: name, Err: err}
}
