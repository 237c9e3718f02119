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
	for range 4 { // so that the log is far ahead of the remembered state
		s.everyone("since the coordinator's state was remembered")
		s.leads().Resign()
	}
	// Wait until all stand in line again and know it: each then has a position from after the
	// remembered state.
	g := s.leads()
	s.inLine(0)
	t.Eventually(t.Soon(), "each candidate knows that it stands in line", func() bool {
		return !slices.ContainsFunc(s.clients, func(c *engine.Client) bool { return !s.knows(c) })
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

// knows reports whether the candidate knows that it stands in line: it has noted that it
// joined, and not that it left since. A member may already stand while the answer to its Join
// is still on its way.
func (s *scenario) knows(c *engine.Client) (joined bool) {
	for _, e := range s.History().Events {
		if e.Candidate == c.Name && (e.Kind == history.Joined || e.Kind == history.Left) {
			joined = e.Kind == history.Joined
		}
	}
	return joined
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
			s.Fatalf("%s has joined at position %d, which is not later than %d from before the coordinator's log went back", c.Name, e.Position, top)
		case e.Candidate == c.Name:
			joined = true
		}
	}
	return joined
}
