//go:build !linux

package local

import (
	"context"
	"runtime"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// A Backend is not available on this system.
type Backend struct{}

var _ backend.Backend = (*Backend)(nil)

var errSystem = unsupported(runtime.GOOS)

func newOperator(*coordinator.URL) (coordinator.Operator, error) { return nil, errSystem }

// New fails with [errors.ErrUnsupported] on this system.
func New(dir string, o *Options) (*Backend, error) { return nil, wrap("open", "", errSystem) }

// Open fails with [errors.ErrUnsupported] on this system.
func Open(u *coordinator.URL) (*Backend, error) {
	return nil, wrap("open", "", errSystem)
}

// Session fails with [errors.ErrUnsupported] on this system.
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	return nil, wrap("session", "", errSystem)
}

// Close does nothing on this system.
func (b *Backend) Close() error { return nil }
