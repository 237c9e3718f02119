package zookeeper

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
)

// A session deletes the znodes that it has made as parents of others: the znodes of empty lines,
// and folders, but not one in which deletions are counted (deletions.go). Otherwise each name that was ever used would keep one. Container znodes, which
// servers delete by themselves, cannot be used: servers also delete them if they have data, and the
// data of a line is its header.
//
// The session deletes a znode if two looks, a session time apart, show that nothing was below it in
// between, and if it was never written. The delete itself is conditional on both. The next join
// makes the znode anew, and its numbers then begin at 0. Positions come from the log, and go on.
//
// Names of members then come again, so a request that names an earlier member must not arrive so
// late that it meets a new one. That is why the znode must have been empty for so long. Only a
// session with a longer session time could send such a request: if somebody else has removed its
// member, and its own request to remove it is under way for all that time.
//
// The session leaves znodes of other sessions alone, because an operator may have chosen their ACL.
// It deletes nothing if the ACL protects its creator, because any client that may create znodes on
// the prefix could then take the name. It also deletes nothing if names are those of another
// library, because some libraries make a line once and rely on it.

// A made znode is one that the session has made.
type made struct {
	unchanged int64 // the pzxid, if nothing was below it at the last look; 0 if something was
	pause     int   // how many looks leave it out
	pauses    int   // how many the next pause has
}

// maxPauses is the longest pause, in looks. Something stands there, and the session does not know until when.
const maxPauses = 64

// madeAt notes that the session has made the znode at path.
func (s *session) madeAt(path string) {
	o := s.options
	if o.ACL != OpenACL || o.As != "" || o.NamePrefix != "" || !strings.HasPrefix(path, o.Prefix+"/") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made[path] = new(made)
}

// Once in a session time, until the session ends, sweep deletes the unused znodes that the session
// has made.
func (s *session) sweep() {
	tick := time.NewTicker(s.TTL())
	defer tick.Stop()
	for {
		select {
		case <-s.Context().Done():
			return
		case <-tick.C:
		}
		if err := s.sweepOnce(); err != nil && s.Context().Err() == nil {
			s.options.Logger.Debug("znodes that nobody uses could not be looked for", "err", err)
		}
	}
}

// sweepOnce looks at what the session has made. It sends one read for each znode below which the session has no
// member.
func (s *session) sweepOnce() error {
	paths := s.idle()
	stats, err := readAll(s.Context(), s, paths, stat)
	if err != nil {
		return err
	}
	for i, path := range paths {
		gone, err := s.sweepAt(path, stats[i])
		if err != nil {
			return err
		}
		if gone {
			s.mu.Lock()
			delete(s.made, path)
			s.mu.Unlock()
		}
	}
	return nil
}

// idle returns what is to be looked at, the deepest first.
func (s *session) idle() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := make(map[string]bool)
	for path := range s.members {
		used[parent(path)] = true
	}
	for path, m := range s.made {
		switch {
		case used[path]:
			*m = made{}
		case m.pause > 0:
			m.pause--
		default:
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return paths
}

// sweepAt deletes the znode at path if it may. It reports whether the session need not look at it again.
func (s *session) sweepAt(path string, st *zk.Stat) (gone bool, err error) {
	s.mu.Lock()
	m := s.made[path]
	empty := st != nil && st.NumChildren == 0
	quiet := empty && m.unchanged == st.Pzxid
	if m.unchanged = 0; empty {
		m.unchanged, m.pauses = st.Pzxid, 0
	} else {
		m.pauses = min(2*m.pauses+1, maxPauses)
		m.pause = m.pauses
	}
	s.mu.Unlock()
	switch {
	case st == nil, st.Version > 0: // somebody has deleted it, or written it
		return true, nil
	case !quiet:
		return false, nil
	}
	switch _, err = do(s.Context(), s, remove(path, 0)); {
	case err == nil, err == zk.ErrNoNode, err == zk.ErrBadVersion:
		return true, nil
	case err == zk.ErrNotEmpty:
		return false, nil
	}
	if errors.Is(err, backend.ErrDenied) { // to delete takes a right on the znode above
		return true, nil
	}
	return false, err
}
