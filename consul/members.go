package consul

import "github.com/succession-dev/succession/backend/kit"

// standing has what is known of a member of this session that stands, or is about to.
type standing struct {
	position uint64     // 0 until the member stands
	index    uint64     // of its last change, as far as known
	front    *front     // nil until it is known
	marks    bool       // the line is long: see [session.removal]
	leaves   bool       // Leave has been called
	pinned   bool       // Pin has pinned it
	doubtful bool       // another request to create it may be under way
	unseen   kit.Denial // of watches of the member, and of looks where it stands
}

// stand notes that a member of this session stands under the key, or is about to: then position is 0. doubtful
// says that another request to create it may be under way.
func (s *session) stand(key string, position uint64, doubtful bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[key] = standing{position: position, index: position, doubtful: doubtful}
}

// know changes what is known of the member at that position, if it stands under the key.
func (s *session) know(key string, position uint64, change func(at *standing)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, stands := s.members[key]; stands && at.position == position {
		change(&at)
		s.members[key] = at
	}
}

// changed notes the index of the last change of the key of the member at that position,
// and changeOf returns what is known of it. So a write on condition of the member need not read
// first.
func (s *session) changed(key string, position, index uint64) {
	s.know(key, position, func(at *standing) { at.index = index })
}

func (s *session) changeOf(key string, position uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.members[key]; at.position == position {
		return at.index
	}
	return position
}

// left notes that the member at that position has gone from the key, and returns what was known of it. It reports
// false if that member did not stand there: a caller may name a member that never did.
func (s *session) left(key string, position uint64) (was standing, stood bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, stood = s.members[key]
	if stood = stood && was.position == position; stood {
		delete(s.members, key)
	}
	return was, stood
}

// leave notes that the member at that position is about to leave the key.
func (s *session) leave(key string, position uint64) {
	s.know(key, position, func(at *standing) { at.leaves = true })
}

// hasLeft reports whether the session has removed the member that it joined at that
// position.
func (s *session) hasLeft(key string, position uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[key].position != position
}
