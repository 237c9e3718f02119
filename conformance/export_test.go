package conformance

import "github.com/succession-dev/succession/conformance/internal/election"

// SetElections makes the rules use the elections that m makes instead of package elect.
func (h *Harness) SetElections(m election.Maker) { h.election = m }

// Skipped is the message with which [Run] skips a rule.
func (r Result) Skipped() string { return r.skipped() }
