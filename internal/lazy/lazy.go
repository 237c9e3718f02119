package composite

import (
	"context"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// A lazy is a backend that could not be reached when the composite was opened. The first
// session that is asked of it opens it: an election that has moved needs From no more,
// and its processes must be able to start without.
type lazy struct {
	open func(context.Context) (backend.Backend, error)

	opening lock

	mu     sync.Mutex
	b      backend.Backend // nil until it has been reached
	closed bool
}

// Lazy returns a backend that is opened by the first session that is asked of it.
func Lazy(open func(context.Context) (backend.Backend, error)) backend.Backend {
	return &lazy{open: open, opening: newLock()}
}

// Session opens the backend where that has not been done; see [backend.Backend].
func (l *lazy) Session(ctx context.Context) (backend.Session, error) {
	b, err := l.reach(ctx)
	if err != nil {
		return nil, err
	}
	return b.Session(ctx)
}

func (l *lazy) reach(ctx context.Context) (backend.Backend, error) {
	if err := l.opening.take(ctx); err != nil {
		return nil, err
	}
	defer l.opening.release()
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
func (l *lazy) Close() error {
	l.mu.Lock()
	l.closed = true
	b := l.b
	l.mu.Unlock()
	if b == nil {
		return nil
	}
	return b.Close()
}
