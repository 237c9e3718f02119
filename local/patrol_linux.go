package local

import (
	"maps"
	"math/rand/v2"
	"time"

	"github.com/succession-dev/succession/backend"
)

// About once a second patrol checks that others still find the session's folder, and the FIFOs of
// its members that are first. inotify does not notice when a folder above is moved, or when
// something is mounted over one. This takes no descriptor, so it also works when there is none
// left. It returns when the session ends.
func (s *session) patrol() {
	for {
		select {
		case <-s.Done():
			return
		case <-time.After(lookAgain*3/4 + rand.N(lookAgain/2)):
		}
		if s.Alive() != nil { // Alive asks folder.moved
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

// alarm makes patrol ring the bell when the FIFO of m can no longer be found, until stop is called.
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
