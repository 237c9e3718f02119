package kit

import (
	"sync"

	"github.com/succession-dev/succession/backend"
)

// Pins counts the calls of Pin of a session, by member. A member that is found pinned after an answer was lost was pinned by the call that lost
// it, if there was no other call: nobody but its session pins a member. It is safe for concurrent use.
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

// Alone reports whether one call for m has begun at most.
func (p *Pins) Alone(m backend.Member) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[place{m.Line, m.Position}] <= 1
}
