package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/history"
)

// rewound is what happens in Fault.rewound.
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
	for i := range 20 { // so that the log is far ahead of what was remembered
		s.watcher.Put(t.Name+"-x", fmt.Sprint(i), nil)
	}
	s.everyone("since the coordinator's state was remembered")
	g := s.leads()
	g.Resign()
	g = s.after(g)
	s.inLine(0) // all stand in line again: each has a position from after the state that was remembered
	since := t.Elapsed()
	rewind()
	away := make(map[*engine.Client]bool) // those who were told
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

// caughtUp reports whether the candidate has joined since then, which must be at a
// position later than all from before.
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
