package faults

import (
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/history"
)

// rewound is the fault of rule Fault.rewound.
func rewound(s *scenario) {
	t := s.Trial
	told := make(chan *engine.Client, candidates)
	s.Excuse(func(c *engine.Client, err error) bool {
		if !engine.Is(err, backend.ErrReset) {
			return false
		}
		told <- c
		return true
	})
	rewind := t.Rewind()
	var g *engine.Term
	for range 4 { // so that the log is far ahead of what was remembered
		s.everyone("since the coordinator's state was remembered")
		g = s.leads()
		g.Resign()
		g = s.after(g)
	}
	// Each stands at a position from after the state that was remembered. Its Join has
	// returned: what returns later was not asked for later.
	t.Eventually(t.Recovery(), "all stand in line again, and know it", func() bool {
		line := s.watcher.Members()
		known := s.positions()
		return len(line) == len(s.clients) && !slices.ContainsFunc(line, func(m backend.Member) bool {
			return known[s.Owner(m)] != m.Position
		})
	})
	since := t.Elapsed()
	rewind()
	away := make(map[*engine.Client]bool) // the clients that were told, and gave up
	t.Eventually(t.Recovery(), "each candidate is told that the coordinator's log has gone back, or stands at a later position", func() bool {
		for len(told) > 0 {
			away[<-told] = true
		}
		return !slices.ContainsFunc(s.clients, func(c *engine.Client) bool { return !away[c] && !s.caughtUp(c, since) })
	})
	if s.seen.Ended() {
		s.seen.Ends(t.Soon(), backend.ErrReset)
	}
	s.seen.Ordered()
	_ = s.watcher.Close() // the coordinator may not know its session any more, nor those of the others
	s.clients = slices.DeleteFunc(s.clients, func(c *engine.Client) bool {
		if away[c] {
			_ = c.Close()
		}
		return away[c]
	})
	s.watches()
	t.Want("RaiseFence", s.watcher.Elect().RaiseFence(t.Ctx, g.Token))
	for len(s.clients) < candidates {
		s.joins()
	}
	s.after(g)
}

// positions returns the position that each candidate has joined at last.
func (s *scenario) positions() map[string]uint64 {
	last := make(map[string]uint64)
	for _, e := range s.History().Events {
		if e.Kind == history.Joined {
			last[e.Candidate] = e.Position
		}
	}
	return last
}

// caughtUp reports whether the candidate has joined since then. It fails if the candidate has
// joined at a position that is not later than all positions from before.
func (s *scenario) caughtUp(c *engine.Client, since time.Duration) (joined bool) {
	var top uint64
	for _, e := range s.History().Events {
		switch {
		case e.Kind != history.Joined:
		case e.At < since:
			top = max(top, e.Position)
		case e.Candidate == c.Name && e.Position <= top:
			s.Never("%s has joined at position %d, which is not later than %d from before the coordinator's log went back", c.Name, e.Position, top)
		case e.Candidate == c.Name:
			joined = true
		}
	}
	return joined
}
