// Package broken holds backends that each break one law of package backend in one
// way that a real driver has broken it, or easily would. They are for the test that
// the conformance suite catches each of them, by the right rules.
package broken

import (
	"context"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// A Flaw is one way to break the contract.
type Flaw struct {
	Name string
	// Law is what it breaks, in a sentence.
	Law string
	// wrap makes a session that breaks it.
	wrap func(b *Backend, s backend.Session) backend.Session
	// stays says that Close does nothing.
	stays bool
}

// A Backend is a backend with a flaw.
type Backend struct {
	backend.Backend
	flaw Flaw

	mu       sync.Mutex
	sessions map[backend.Session]backend.Session
	lost     bool          // the answer of the next Join is said to get lost
	release  chan struct{} // ends what leaks
}

// New gives b the flaw.
func New(b backend.Backend, f Flaw) *Backend {
	return &Backend{Backend: b, flaw: f, sessions: make(map[backend.Session]backend.Session), release: make(chan struct{})}
}

// Unwrap returns the backend without the flaw.
func (b *Backend) Unwrap() backend.Backend { return b.Backend }

// LoseAnswer says that the answer to the next write will get lost, which a flawed
// driver takes for a failure.
func (b *Backend) LoseAnswer() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = true
}

// takeLost reports, once, whether LoseAnswer was called.
func (b *Backend) takeLost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	lost := b.lost
	b.lost = false
	return lost
}

// Release ends the goroutines that the flaw has leaked, so that a test can end.
func (b *Backend) Release() { close(b.release) }

// Close implements [backend.Backend].
func (b *Backend) Close() error {
	if b.flaw.stays {
		return nil
	}
	return b.Backend.Close()
}

// Session implements [backend.Backend].
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	flawed := b.sessions[s]
	if flawed == nil {
		flawed = b.flaw.wrap(b, s)
		b.sessions[s] = flawed
	}
	return flawed, nil
}
