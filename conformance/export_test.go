package conformance

import "github.com/succession-dev/succession/conformance/internal/election"

// SetElections has the rules use what m makes in place of package elect.
func (h *Harness) SetElections(m election.Maker) { h.election = m }

// Skipped is the message with which [Run] skips a rule.
func (r Result) Skipped() string { return r.skipped() }
