package backend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// An Opener makes a backend from a URL. It reads the parameters that it knows from u, and
// refuses the others with [URL.Err]. It connects before it returns, so that its error
// tells of a wrong address or wrong credentials. It returns soon after ctx ends, and
// after a bounded time in any case.
type Opener func(ctx context.Context, u *URL) (Backend, error)

// A Mux opens backends by the scheme of their URL. The zero value is an empty
// mux, ready for use. It is safe for concurrent use.
type Mux struct {
	mu      sync.RWMutex
	openers map[string]Opener
}

// Handle registers open for the scheme. It panics if the scheme is taken: two drivers for
// one scheme are a mistake in the program.
func (m *Mux) Handle(scheme string, open Opener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, dup := m.openers[scheme]; dup {
		panic("backend: scheme registered twice: " + scheme)
	}
	if m.openers == nil {
		m.openers = make(map[string]Opener)
	}
	m.openers[scheme] = open
}

// Schemes returns the registered schemes, sorted.
func (m *Mux) Schemes() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.openers))
}

// Check returns nil where a driver is registered for the scheme of u, and otherwise an
// error that lists the registered schemes.
func (m *Mux) Check(u *URL) error {
	known := m.Schemes()
	switch {
	case slices.Contains(known, u.Scheme):
		return nil
	case len(known) == 0:
		return fmt.Errorf("%w URL: no driver is registered", ErrInvalid)
	}
	// What is before the first colon is shown, and nothing else: nobody knows what the rest means.
	return fmt.Errorf("%w URL: unknown scheme %q; known are %s", ErrInvalid, u.Scheme, strings.Join(known, ", "))
}

// Open opens the backend that rawURL names. It blocks until the coordinator has
// answered, and returns [ErrUnavailable] where it does not within the driver's
// connect timeout. Unknown schemes and parameters are errors that list the known
// ones.
func (m *Mux) Open(ctx context.Context, rawURL string) (Backend, error) {
	u, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if err := m.Check(u); err != nil {
		return nil, fmt.Errorf("%w (a driver is registered by importing its package)", err)
	}
	m.mu.RLock()
	open := m.openers[u.Scheme]
	m.mu.RUnlock()
	b, err := open(ctx, u)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) { // drivers return the cause of ctx
		err = fmt.Errorf("%w (%w)", err, ctx.Err())
	}
	return b, err
}

// DefaultMux is the mux that drivers register with when they are imported.
var DefaultMux Mux

// Register registers a driver with [DefaultMux]; drivers call it from init.
func Register(scheme string, open Opener) { DefaultMux.Handle(scheme, open) }

// Open opens a backend through [DefaultMux]; see [Mux.Open]. The caller closes
// the backend.
func Open(ctx context.Context, rawURL string) (Backend, error) {
	return DefaultMux.Open(ctx, rawURL)
}
