// Package lazy is for backends that are opened when they are first needed: their coordinator may be
// out of reach until then, or never be needed at all.
package lazy

import (
	"context"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// A Backend is a backend that is opened by the first session that is asked of it, and again by the
// next if that fails. It is safe for concurrent use.
type Backend struct {
	open    func(context.Context) (backend.Backend, error)
	opening chan struct{} // holds one while somebody opens

	mu     sync.Mutex
	b      backend.Backend // nil until it has been opened
	closed bool
}

// New returns a backend that open opens.
func New(open func(context.Context) (backend.Backend, error)) *Backend {
	return &Backend{open: open, opening: make(chan struct{}, 1)}
}

// Session opens the backend where that has not been done; see [backend.Backend].
func (l *Backend) Session(ctx context.Context) (backend.Session, error) {
	b, err := l.reach(ctx)
	if err != nil {
		return nil, err
	}
	return b.Session(ctx)
}

func (l *Backend) reach(ctx context.Context) (backend.Backend, error) {
	select {
	case l.opening <- struct{}{}:
		defer func() { <-l.opening }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	b, closed := l.b, l.closed
	l.mu.Unlock()
	if closed {
		return nil, backend.ErrClosed
	}
	if b != nil {
		return b, nil
	}
	b, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		b.Close() // it holds nothing
		return nil, backend.ErrClosed
	}
	l.b = b
	return b, nil
}

// Close closes the backend if it has been opened; see [backend.Backend].
func (l *Backend) Close() error {
	l.mu.Lock()
	l.closed = true
	b := l.b
	l.mu.Unlock()
	if b == nil {
		return nil
	}
	return b.Close()
}
