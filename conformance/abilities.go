package conformance

import (
	"errors"
	"maps"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// abilities are what the suite has found out, once in a run, of what a backend lacks.
type abilities struct {
	mu    sync.Mutex
	known bool
	lacks map[Fault]string
}

// able finds out what the backend lacks, and reports whether the rule can be exercised.
func (t *trial) able() bool {
	a := t.h.abilities
	a.mu.Lock()
	if !a.known {
		a.known = true // also where that fails: each rule then shows how
		a.lacks = t.lacks()
	}
	found := a.lacks
	a.mu.Unlock()
	lacks := maps.Clone(found)
	maps.Copy(lacks, t.h.Lacks)
	t.h.Lacks = lacks
	m := t.h.missing(t.rule)
	t.mu.Lock()
	t.missing = m
	t.mu.Unlock()
	return m.status == ""
}

// unable returns what able has found missing.
func (t *trial) unable() missing {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.missing
}

// lacks asks a client of its own for all that a backend may lack, and leaves nothing.
func (t *trial) lacks() map[Fault]string {
	lacks := make(map[Fault]string)
	ctx, cancel := t.within(t.h.recovery())
	defer cancel()
	b, err := t.h.Open(ctx)
	if err != nil {
		return lacks
	}
	defer b.Close()
	s, err := b.Session(ctx)
	if err != nil {
		return lacks
	}
	if s.TTL() == 0 {
		lacks[Deadlines] = "sessions have no time (Session.TTL is 0)"
	}
	line := t.h.name("abilities")
	if _, err := s.Get(ctx, line); errors.Is(err, errors.ErrUnsupported) {
		lacks[Records] = "the backend has no records (errors.ErrUnsupported)"
	}
	m, err := s.Join(ctx, line, "abilities")
	if err != nil {
		return lacks
	}
	// No record has this version, so nothing is pinned.
	if err := s.Pin(ctx, m, backend.Header{}, 1); errors.Is(err, errors.ErrUnsupported) {
		lacks[Pins] = "the backend has no pins (errors.ErrUnsupported)"
	}
	_ = s.Leave(ctx, m) // else it goes with the session
	return lacks
}
