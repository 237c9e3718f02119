package zookeeper

import (
	"path"

	"github.com/succession-dev/succession/backend"
)

// A member is one that this session joined. The session's mu guards the fields that change.
type member struct {
	path   string
	joined backend.Member // as Join returned it
	parent int64          // czxid of the line's znode; if it differs, the line was made anew

	pinned   bool
	pinning  chan struct{} // closed when the Pin under way is over; nil if there is none
	stranger bool          // a stand-in for a member that the session did not join
	index    int           // how many stood in front at the last Ahead, up to the one that it waits for; -1 if unknown
	ahead    string        // the key of the predecessor at the last Ahead
	leads    bool          // Ahead has said that it leads, or may lead just behind a gate

	gone chan struct{} // closed when the member was found missing
}

func (o *member) key() string { return path.Base(o.path) }

// member returns the member as it now is. The caller holds mu, or nobody else uses the
// member.
func (o *member) member() backend.Member {
	m := o.joined
	m.Pinned = o.pinned
	return m
}

// removed returns a channel that is closed when the member was found missing; nil for nil.
func (o *member) removed() <-chan struct{} {
	if o == nil {
		return nil
	}
	return o.gone
}

// owner returns what the session knows of m, or nil if it did not join it.
func (s *session) owner(path string, m backend.Member) *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.members[path]; o != nil && o.joined.Position == m.Position {
		return o
	}
	return nil
}

// knows reports whether the znode at path is a member that Join has returned. made is the czxid of the line's
// znode: a member of an earlier line had the same name, and may not have been forgotten.
func (s *session) knows(path string, made int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.members[path]
	return o != nil && o.parent == made
}

// owned returns those members of this session that are not pinned.
func (s *session) owned() []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*member
	for _, o := range s.members {
		if !o.pinned {
			list = append(list, o)
		}
	}
	return list
}

// enlist notes that a member was joined.
func (s *session) enlist(o *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.members[o.path]; old != nil { // it went with a line that was made anew
		s.strike(old)
	}
	s.members[o.path] = o
}

// forget notes that a member has gone.
func (s *session) forget(o *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[o.path] == o {
		s.strike(o)
	}
}

// strike takes o, which is one of the members, from them, and tells those that wait for it. The caller holds mu.
func (s *session) strike(o *member) {
	delete(s.members, o.path)
	delete(s.warm, o)
	s.leads(o, false)
	close(o.gone)
	s.settle()
}

// departed notes that m has gone: the member behind it may be first.
func (s *session) departed(path string, m backend.Member) {
	if o := s.owner(path, m); o != nil {
		s.forget(o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.members {
		if o.joined.Line == m.Line && o.ahead == m.Key {
			s.place(o, -1)
		}
	}
}

// warm is how many members of a line, from the first on, keep their deadline ahead. It is one more
// than the leader and the heir, because the member behind them does not notice that it has become
// the heir, and its turn may come soon.
const warm = 3

// stands notes where a member stands.
func (s *session) stands(o *member, index int, ahead string, leads bool) {
	s.mu.Lock()
	was := s.warm[o]
	s.place(o, index)
	o.ahead = ahead
	if o.leads && !leads {
		s.leads(o, false)
		s.settle()
	}
	woken := s.warm[o] && !was
	s.mu.Unlock()
	if woken {
		s.wake()
	}
}

// place notes how many stand in front of o; -1 if that is unknown. The caller holds mu.
func (s *session) place(o *member, index int) {
	o.index = index
	if 0 <= index && index < warm && s.members[o.path] == o {
		s.warm[o] = true
	} else {
		delete(s.warm, o)
	}
}

// leads notes whether o leads. The caller holds mu.
func (s *session) leads(o *member, leads bool) {
	if leads != o.leads {
		o.leads = leads
		if leads {
			s.leading++
		} else {
			s.leading--
		}
	}
}

// settle notes that no member relies on the deadline, if none leads. The caller holds mu.
func (s *session) settle() {
	if s.leading == 0 {
		s.link.Lease.Hold(false)
	}
}

// lead notes that a member leads: from then on the session ends when the deadline passes.
// If it has passed, or if the member has gone, or the session has ended, lead reports false.
func (s *session) lead(o *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.members[o.path] != o || s.Ended() != nil || !s.link.Lease.Hold(true) {
		s.settle()
		return false
	}
	s.leads(o, true)
	s.wake()
	return true
}

// near returns the paths of some of the members that stand among the first of their line, at most
// as many as one heartbeat checks.
func (s *session) near() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var paths []string
	for o := range s.warm {
		if paths = append(paths, o.path); len(paths) == maxBeat {
			break
		}
	}
	return paths
}
