// Package candidacy finds out from what candidates trace whether a process stands in the line of an election.
package candidacy

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
)

// A State is how a process stands in one election. It is for one goroutine at a time.
type State struct {
	campaigns int  // that have begun, and are not over
	failed    bool // the one that was over last has failed
	standing  map[backend.Member]bool
}

// Trace takes note of a step of a campaign in the election.
func (s *State) Trace(ev trace.Event) {
	m := ev.Member
	m.Pinned = false // a member stays the same when it is pinned
	switch ev.Kind {
	case trace.Started:
		s.campaigns++
	case trace.Joined:
		if s.standing == nil {
			s.standing = make(map[backend.Member]bool)
		}
		s.standing[m] = true
	case trace.Ended:
		// Its work may hold up the process for long. Meanwhile the member has gone, or may go at any time, and nobody joins again. The
		// member of a leader that hands over stands until its work has ended.
		if errors.Is(ev.Err, elect.ErrLost) && !errors.Is(ev.Err, elect.ErrAsked) && !errors.Is(ev.Err, elect.ErrNotReady) {
			delete(s.standing, m)
		}
	case trace.SessionLost, trace.Left:
		delete(s.standing, m)
	case trace.Finished:
		s.campaigns--
		s.failed = failed(ev)
	}
}

// failed reports whether a campaign is over although what it was for is not. Whoever wants a lock, or another recipe, once is told by the
// error, and may never want it again.
func failed(ev trace.Event) bool {
	if ev.Err == nil || ev.Recipe != "" {
		return false
	}
	ordered := errors.Is(ev.Err, context.Canceled) || errors.Is(ev.Err, context.DeadlineExceeded) || errors.Is(ev.Err, backend.ErrClosed)
	return !ordered && !errors.Is(ev.Err, elect.ErrNotFirst) && !errors.Is(ev.Err, elect.ErrNotReady)
}

// Wants reports whether the process wants to stand in line. It still does when a campaign has failed, until another campaign ends
// otherwise.
func (s *State) Wants() bool { return s.campaigns > 0 || s.failed }

// Standing is how many members of the process stand in line, or lead.
func (s *State) Standing() int { return len(s.standing) }
