package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/history"
)

// rewound is what happens in Fault.rewound.
func rewound(s *story) {
	t := s.t
	told := make(chan *client, cast)
	s.mu.Lock()
	s.refused = func(c *client, err error) bool {
		if !is(err, backend.ErrReset) {
			return false
		}
		told <- c
		return true
	}
	s.mu.Unlock()
	rewind := t.remember()
	for i := range 20 { // so that the log is far ahead of what was remembered
		s.watcher.put(t.line+"-x", fmt.Sprint(i), nil)
	}
	s.everyone("since the coordinator's state was remembered")
	g := s.leads()
	g.resign()
	g = s.after(g)
	s.inLine(0) // who resigned stands in line again: each has a position that it has taken since
	since := t.notes.Now()
	rewind()
	away := make(map[*client]bool) // those who were told
	t.poll(t.h.recovery(), "each candidate is told that the coordinator's log has gone back, or stands at a later position", func() bool {
		for len(told) > 0 {
			away[<-told] = true
		}
		return !slices.ContainsFunc(s.clients, func(c *client) bool { return !away[c] && !s.caughtUp(c, since) })
	})
	if returned(s.seen.end) {
		if err := <-s.seen.end; !is(err, backend.ErrReset) {
			t.fatalf("the observation ended with %v; want ErrReset", err)
		}
	}
	s.seen.ordered()
	_ = s.watcher.Close() // its session may be one that the coordinator never had, as may those of the others
	s.clients = slices.DeleteFunc(s.clients, func(c *client) bool {
		if away[c] {
			_ = c.Close()
		}
		return away[c]
	})
	s.watches()
	if err := s.watcher.elect().RaiseFence(t.ctx, g.token); err != nil {
		t.fatalf("RaiseFence: %v", err)
	}
	for len(s.clients) < cast {
		s.joins()
	}
	s.after(g)
}

// caughtUp reports whether the candidate has joined since then, which must be at a
// position later than all from before.
func (s *story) caughtUp(c *client, since time.Duration) (joined bool) {
	var top uint64
	for _, e := range s.t.notes.History().Events {
		switch {
		case e.Kind != history.Joined:
		case e.At < since:
			top = max(top, e.Position)
		case e.Candidate == c.name && e.Position <= top:
			s.t.fatalf("%s has joined at position %d, which is not later than %d from before the coordinator's log went back", c.name, e.Position, top)
		case e.Candidate == c.name:
			joined = true
		}
	}
	return joined
}
