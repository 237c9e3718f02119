package kit

import (
	"sync"

	"github.com/succession-dev/succession/backend"
)

// Pins counts the calls of Pin of a session, by member. A driver that has lost the answer of a call, and finds the member pinned, may conclude
// that this call has pinned it if there was no other: only its own session pins a member. Nothing is forgotten: a session
// pins few members. Pins is safe for concurrent use.
type Pins struct {
	mu    sync.Mutex
	calls map[place]int
}

type place struct {
	line     string
	position uint64
}

// Begin notes that a call for m begins.
func (p *Pins) Begin(m backend.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = make(map[place]int)
	}
	p.calls[place{m.Line, m.Position}]++
}

// Alone reports whether at most one call for m has begun.
func (p *Pins) Alone(m backend.Member) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[place{m.Line, m.Position}] <= 1
}
