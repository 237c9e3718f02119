package conformance

import (
	"time"

	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/internal/calm"
)

// SetElections makes the rules use the elections that m makes instead of package elect.
func (h *Harness) SetElections(m election.Maker) { h.election = m }

// Skipped is the message with which [Run] skips a rule.
func (r Result) Skipped() string { return r.skipped() }

// OnMachine has a script in place of what measures how busy the machine is: one reading for each trial.
func (h *Harness) OnMachine(busy ...bool) *Script {
	s := &Script{busy: busy}
	h.calm = s
	return s
}

// Exercised is what Run prints last.
func (r *Report) Exercised() string { return r.exercised() }

// EndsBy makes all rules end by then.
func (h *Harness) EndsBy(deadline time.Time) { h.deadline = deadline }

// A Script is an [engine.Calm].
type Script struct {
	busy   []bool
	Trials int // that have been measured
}

// Since implements [engine.Calm].
func (s *Script) Since(time.Time) calm.Reading {
	s.Trials++
	r := calm.Reading{Limit: 250 * time.Millisecond}
	if s.busy[s.Trials-1] {
		r.Late = time.Second
	}
	return r
}
