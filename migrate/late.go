package migrate

import (
	"context"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// A late is a backend that could not be reached when the composite was opened, and is
// opened by the first session that is asked of it: an election that has moved needs
// From no more, and its processes must be able to start without.
type late struct {
	url string

	opening chan struct{} // holds one while it is being opened

	mu     sync.Mutex
	b      backend.Backend // nil until it has been reached
	closed bool
}

func newLate(url string) *late { return &late{url: url, opening: make(chan struct{}, 1)} }

// Session opens the backend where that has not been done; see [backend.Backend].
func (l *late) Session(ctx context.Context) (backend.Session, error) {
	select {
	case l.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	b, err := l.reach(ctx)
	<-l.opening
	if err != nil {
		return nil, err
	}
	return b.Session(ctx)
}

// reach returns the backend. The caller holds opening.
func (l *late) reach(ctx context.Context) (backend.Backend, error) {
	l.mu.Lock()
	b, closed := l.b, l.closed
	l.mu.Unlock()
	if closed {
		return nil, backend.ErrClosed
	}
	if b != nil {
		return b, nil
	}
	b, err := backend.Open(ctx, l.url)
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
func (l *late) Close() error {
	l.mu.Lock()
	l.closed = true
	b := l.b
	l.mu.Unlock()
	if b == nil {
		return nil
	}
	return b.Close()
}
