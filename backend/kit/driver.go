package kit

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
)

// A Driver is the name of a driver: the scheme of its URLs, and the field Backend of its
// errors.
type Driver string

// Register registers the func that opens the driver's URLs; see [backend.Register].
func Register[B backend.Backend](d Driver, open func(ctx context.Context, u *backend.URL) (B, error)) {
	backend.Register(string(d), func(ctx context.Context, u *backend.URL) (backend.Backend, error) {
		b, err := open(ctx, u)
		if err != nil {
			return nil, err // a nil of type B would be a [backend.Backend] that is not nil
		}
		return b, nil
	})
}

// Opened opens the first session of a new backend, and returns the backend. If that fails, or
// if err is not nil, Opened returns the zero value and the error, and nothing is left open.
func Opened[B backend.Backend](ctx context.Context, b B, err error) (B, error) {
	if err == nil {
		if _, err = b.Session(ctx); err == nil {
			return b, nil
		}
		_ = b.Close() // there is no session that could be left
	}
	var none B
	return none, err
}

// Wrap returns err as a [backend.Error] of the operation op on the election or record called
// name, which may be empty. It returns err itself if that is nil or wrapped already.
func (d Driver) Wrap(op, name string, err error) error {
	var wrapped *backend.Error
	if err == nil || errors.As(err, &wrapped) {
		return err
	}
	return &backend.Error{Backend: string(d), Op: op, Name: name, Err: err}
}
