package local

import (
	"maps"
	"math/rand/v2"
	"time"

	"github.com/succession-dev/succession/backend"
)

// patrol looks about once a second whether others still find what this session holds: the folder, and
// the FIFOs of those of its members that are first. inotify does not tell when a folder above is moved, or
// when something is mounted over one. This takes no descriptor, so it also works when there is none left.
// It returns when the session ends.
func (s *session) patrol() {
	for {
		select {
		case <-s.Done():
			return
		case <-time.After(lookAgain*3/4 + rand.N(lookAgain/2)):
		}
		if s.Alive() != nil { // which asks folder.moved
			return
		}
		s.mu.Lock()
		first := maps.Clone(s.first)
		s.mu.Unlock()
		for bell, m := range first {
			known := s.known(m)
			if known.own && known.look() == replaced {
				bell.ring()
			}
		}
	}
}

// alarm has the bell rung by patrol when the FIFO of m is not found any more, until stop is called.
func (s *session) alarm(m backend.Member, b bell) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first[b] = m
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.first, b)
	}
}
