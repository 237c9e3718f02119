package simulation

import (
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/memory"
)

// A side is one coordinator: the only one, or one of the two that elections move
// between, the old one first.
type side struct {
	nth        int
	c          *memory.Coordinator
	pause      func() // ends the fault; nil where there is none
	pausedTill time.Time
}

const (
	oldSide = iota
	newSide
)

// URLs of the sides, as records of migrations name them.
var urls = [2]string{"memory:old", "memory:new"}

// header returns the record of an election on one side.
func (w *world) header(s *side, e *election) header.Header {
	h, err := header.Parse(s.c.Record(e.name).Value)
	if err != nil {
		w.fail("header", "the record of %s: %v", e.name, err)
	}
	return h
}

// home returns the side whose line says who leads: the new one from the seal on.
func (w *world) home(e *election) *side {
	if w.plan.Migrate && w.header(w.sides[oldSide], e).Sealed != "" {
		return w.sides[newSide]
	}
	return w.sides[oldSide]
}

// line returns the line that says who leads, without the gate of a migration that has
// been cut over, and the side where it is.
func (w *world) line(e *election) (*side, []backend.Member) {
	s := w.home(e)
	line := s.c.Members(e.name)
	if s.nth == newSide && len(line) > 0 && line[0].Pinned && line[0].Position == w.header(s, e).Migration.Gate {
		line = line[1:]
	}
	return s, line
}

// A spot is a place in the line of one side.
type spot struct {
	side     int
	position uint64
}

// expires returns when the session ends that each member hangs on.
func (w *world) expires() map[spot]time.Time {
	out := make(map[spot]time.Time)
	for _, s := range w.sides {
		for _, session := range s.c.Sessions() {
			for _, m := range session.Members {
				out[spot{s.nth, m.Position}] = session.Expires
			}
		}
	}
	return out
}

func (w *world) resume(s *side) {
	if s.pause == nil {
		return
	}
	s.pause()
	s.pause = nil
	s.pausedTill = time.Now().Add(grace)
	s.c.Resume()
}
