package kit

import (
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// A Scheme is the scheme of a driver's URLs, and the field Backend of its errors.
type Scheme string

// Opener returns open, which opens the URLs of a driver, for the field Open of [coordinator.Driver].
func Opener[B backend.Backend](open func(u *coordinator.URL) (B, error)) coordinator.Opener {
	return func(u *coordinator.URL) (backend.Backend, error) {
		b, err := open(u)
		if err != nil {
			return nil, err // a nil of type B would be a [backend.Backend] that is not nil
		}
		return b, nil
	}
}

// Wrap returns err as a [backend.Error] of the operation op on the election or record called
// name, which may be empty. It returns err itself if that is nil or wrapped already.
func (s Scheme) Wrap(op, name string, err error) error {
	var wrapped *backend.Error
	if err == nil || errors.As(err, &wrapped) {
		return err
	}
	return &backend.Error{Backend: string(s), Op: op, Name: name, Err: err}
}
