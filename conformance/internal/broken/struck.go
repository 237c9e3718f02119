package broken

import (
	"sync"
	"time"
)

// struck notes the faults that strike a flawed backend. The backend without the flaw is struck by
// the real fault.
type struck struct {
	mu          sync.Mutex
	lost        bool          // the answer to the next write will get lost
	held        *held         // the newest HoldBack; nil for none
	expired     bool          // the coordinator ends the session
	connection  chan struct{} // closed, and made anew, when the connection breaks
	broke       bool          // it has broken
	compactions int           // of the coordinator's log
	shift       time.Duration // of the coordinator's wall clock
	killed      chan struct{} // closed when the client has crashed
	quorum      chan struct{} // closed while the client's server is one of a quorum
}

func newStruck() *struck {
	s := &struck{connection: make(chan struct{}), killed: make(chan struct{}), quorum: make(chan struct{})}
	close(s.quorum)
	return s
}

// LoseAnswer says that the answer to the next write will get lost. A flawed driver takes that for a
// failure.
func (s *struck) LoseAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = true
}

// takeLost reports, once, whether LoseAnswer was called.
func (s *struck) takeLost() bool { return s.take(&s.lost) }

// held is one call of HoldBack.
type held struct {
	skip int
	late []func() // what happens when the write arrives
}

// HoldBack says that the next write after skip others is held back on its way until release is
// called. It returns a func that also delivers what a flawed driver has sent.
func (s *struck) HoldBack(skip int, release func()) func() {
	h := &held{skip: skip}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = h
	return func() {
		release()
		s.mu.Lock()
		late := h.late
		if h.late = nil; s.held == h {
			s.held = nil
		}
		s.mu.Unlock()
		for _, f := range late {
			f()
		}
	}
}

// holdsBack says that the flawed driver sends a write. If that write is held back, f is called when
// it arrives, and holdsBack returns true.
func (s *struck) holdsBack(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return false
	}
	if s.held.skip--; s.held.skip != -1 {
		return false
	}
	s.held.late = append(s.held.late, f)
	return true
}

// Expire says that the coordinator ends the session.
func (s *struck) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = true
}

// takeExpired reports, once, whether Expire was called.
func (s *struck) takeExpired() bool { return s.take(&s.expired) }

func (s *struck) take(what *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := *what
	*what = false
	return was
}

// Disconnect says that the client's connection breaks, and that the client makes another. A sound
// driver hides that.
func (b *Backend) Disconnect() {
	b.struck.mu.Lock()
	b.broke = true
	close(b.connection)
	b.connection = make(chan struct{})
	b.struck.mu.Unlock()
	if b.flaw.breaks != nil {
		b.flaw.breaks(b)
	}
}

func (s *struck) disconnected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broke
}

// connected returns a channel that is closed when the connection of now breaks.
func (s *struck) connected() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connection
}

// Compact says that the coordinator forgets the history of its log.
func (s *struck) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compactions++
}

func (s *struck) compacted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compactions
}

// Clock says by how much the coordinator's wall clock is wrong.
func (s *struck) Clock(shift time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shift = shift
}

func (s *struck) shifted() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shift
}

// Isolate says whether the client's server answers it without being one of a quorum.
func (s *struck) Isolate(alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.quorum:
		if alone {
			s.quorum = make(chan struct{})
		}
	default:
		if !alone {
			close(s.quorum)
		}
	}
}

// inQuorum returns a channel that is closed while the client's server is one of a quorum.
func (s *struck) inQuorum() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quorum
}

// hasCrashed reports whether the client has crashed.
func (s *struck) hasCrashed() bool {
	select {
	case <-s.killed:
		return true
	default:
		return false
	}
}

// Kill says that the client has crashed. It reports whether its session outlives it.
func (b *Backend) Kill() bool {
	close(b.killed)
	return b.flaw.outlives
}
