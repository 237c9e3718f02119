//go:build linux

package evidence

import (
	"slices"
	"time"

	"github.com/succession-dev/succession/internal/history"
)

// WithOnsets returns the history of one election, with one more fault at the beginning
// of each that may prolong a vacancy, which touches everybody for no time: a vacancy is
// counted anew from there. Whoever is hit is waited for until its session ends, if it
// is its turn.
//
// It is not its turn where somebody stands in front of it who has been in good health
// for as long as a vacancy may last: that one leads, or is about to. Otherwise faults
// of the hindmost would excuse any vacancy.
func WithOnsets(h *history.History, election string, bound time.Duration) *history.History {
	out := &history.History{Faults: slices.Clone(h.Faults)}
	for _, e := range h.Events {
		if e.Election == election {
			out.Events = append(out.Events, e)
		}
	}
	line := make(map[string]uint64) // who stands where
	events := out.Events
	for _, f := range h.Faults {
		for len(events) > 0 && events[0].At <= f.From {
			switch e := events[0]; e.Kind {
			case history.Joined:
				line[e.Candidate] = e.Position
			case history.Left, history.Deposed:
				delete(line, e.Candidate)
			}
			events = events[1:]
		}
		if !shielded(h, f, line, bound) {
			out.Faults = append(out.Faults, history.Fault{Kind: "onset", From: f.From, To: f.From})
		}
	}
	return history.Merge(out)
}

// shielded reports whether somebody in good health stands in front of whom f hits.
func shielded(h *history.History, f history.Fault, line map[string]uint64, bound time.Duration) bool {
	hit, stands := line[f.Target]
	if !stands {
		return false
	}
	for candidate, position := range line {
		ill := slices.ContainsFunc(h.Faults, func(o history.Fault) bool {
			return (o.Target == "" || o.Target == candidate) && o.From <= f.From && f.From <= o.To+bound
		})
		if position < hit && !ill {
			return true
		}
	}
	return false
}
