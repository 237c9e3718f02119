package zookeeper

import (
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Remembered returns how many things a session keeps for names of lines, and how many watches it has.
func Remembered(s backend.Session) int {
	z := s.(*kit.Adapter).Session.(*session)
	z.mu.Lock()
	n := len(z.members) + len(z.joins) + len(z.made)
	z.mu.Unlock()
	z.watches.mu.Lock()
	defer z.watches.mu.Unlock()
	for _, w := range z.watches.armed {
		w.turn <- struct{}{}
		if w.live() {
			n++
		}
		<-w.turn
	}
	return n
}
