package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// A Mux opens backends by the scheme of their URL, and has the descriptions of their drivers. The
// zero value is an empty mux, ready for use. It is safe for concurrent use.
type Mux struct {
	mu      sync.RWMutex
	drivers map[string]Driver
}

// Handle registers a driver. It panics if the scheme is taken, because two drivers for one scheme
// are a mistake in the program, or if a required field is missing.
func (m *Mux) Handle(d Driver) {
	if d.Scheme == "" || d.Open == nil {
		panic("coordinator: a driver needs Scheme and Open")
	}
	d.Title = cmp.Or(d.Title, d.Scheme)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, dup := m.drivers[d.Scheme]; dup {
		panic("coordinator: scheme registered twice: " + d.Scheme)
	}
	if m.drivers == nil {
		m.drivers = make(map[string]Driver)
	}
	m.drivers[d.Scheme] = d
}

// Drivers returns the registered drivers, in the order of their schemes.
func (m *Mux) Drivers() []Driver {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.drivers), func(a, b Driver) int { return strings.Compare(a.Scheme, b.Scheme) })
}

// Schemes returns the registered schemes, sorted.
func (m *Mux) Schemes() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.drivers))
}

// Driver returns the driver that is registered for the scheme of u. If there is none, the error, an
// [backend.ErrInvalid], lists the registered schemes.
func (m *Mux) Driver(u *URL) (Driver, error) {
	m.mu.RLock()
	d, ok := m.drivers[u.Scheme]
	m.mu.RUnlock()
	known := m.Schemes()
	switch {
	case ok:
		return d, nil
	case len(known) == 0:
		return Driver{}, fmt.Errorf("%w URL: no driver is registered", backend.ErrInvalid)
	}
	// Only the text before the first colon is shown, because the rest of an unknown URL may be a
	// secret.
	return Driver{}, fmt.Errorf("%w URL: unknown scheme %q; known are %s", backend.ErrInvalid, u.Scheme, strings.Join(known, ", "))
}

// Open makes the backend that rawURL names. It does not connect: the first session does. Unknown
// schemes and parameters are errors that list the known ones.
func (m *Mux) Open(rawURL string) (backend.Backend, error) {
	u, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	d, err := m.Driver(u)
	if err != nil {
		return nil, fmt.Errorf("%w (a driver is registered by importing its package)", err)
	}
	return d.Open(u)
}

// Operator returns an operator of the coordinator that u names; see [Driver]. It does not connect.
// It returns [errors.ErrUnsupported] if the driver has none.
func (m *Mux) Operator(u *URL) (Operator, error) {
	d, err := m.Driver(u)
	if err != nil {
		return nil, err
	}
	if d.Operator == nil {
		return nil, fmt.Errorf("the driver of %s brings no operator: %w", d.Title, errors.ErrUnsupported)
	}
	return d.Operator(u)
}

// DefaultMux is the mux that drivers register with when they are imported.
var DefaultMux Mux

// Register registers a driver with [DefaultMux]; drivers call it from init. See [Mux.Handle].
func Register(d Driver) { DefaultMux.Handle(d) }
