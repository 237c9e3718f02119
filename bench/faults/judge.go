package main

import (
	"slices"
	"time"

	"github.com/succession-dev/succession/internal/history"
)

// paused is the kind of fault during which its target does nothing.
const paused = "paused"

// How the old leader fared.
const (
	oldKept    = "kept"    // it led on
	oldStopped = "stopped" // it acts no more
	oldNever   = "never"   // it still did, when observation ended
	oldGone    = "gone"    // its process had ended
	oldPaused  = "paused"  // nobody followed while its process was paused, which it was to the end
)

// An outcome is what one run showed. Times are nanoseconds in JSON.
type outcome struct {
	// Overlap is for how long more than one candidate acted as leader. Open says that it
	// went on when observation ended.
	Overlap     time.Duration `json:"overlap"`
	OverlapOpen bool          `json:"overlapOpen,omitempty"`
	// Vacancy is for how long from the fault on nobody did.
	Vacancy     time.Duration `json:"vacancy"`
	VacancyOpen bool          `json:"vacancyOpen,omitempty"`
	// Old is how the old leader fared; Late is how long after the next election its last act
	// was, negative if before.
	Old  string        `json:"old"`
	Late time.Duration `json:"late,omitempty"`
	// Missed says that the old leader had hung up before the late answer came.
	Missed bool `json:"missed,omitempty"`
	// Failed is what a candidate complained of, if any. The run counts all the same.
	Failed string `json:"failed,omitempty"`
	// Sitting is the run of the program, by its place in the report; Seed is what this run of the fault drew with, 0 where that was not
	// noted; Took is how long it took, from the start of the servers on.
	Sitting int           `json:"sitting"`
	Seed    uint32        `json:"seed,omitempty"`
	Took    time.Duration `json:"took,omitempty"`
}

// A span is a time in which a candidate acted as leader: from its election to its last act.
type span struct{ from, to time.Duration }

// judge says what a history of one election shows, of which a fault began at the given time
// and which was observed until the end. A term ends at the instant of the candidate's last act,
// whenever the candidate said so; one that is open was acting all the time.
func judge(h *history.History, fault, end time.Duration) outcome {
	var o outcome
	var spans []span
	var old, next *history.Term
	resumed := time.Duration(0)
	for _, election := range h.Elections() {
		for _, t := range h.Terms(election) {
			if t.Open {
				t.To = end
			}
			switch {
			case t.From < fault:
				old = &t
			case next == nil:
				next = &t
			}
			acted := []span{{t.From, t.To}}
			for _, f := range h.Faults {
				if f.Kind == paused && f.Target == t.Candidate {
					acted = without(acted, span{f.From, f.To})
					resumed = f.To
				}
			}
			spans = append(spans, acted...)
		}
	}
	o.Overlap, o.Vacancy, o.OverlapOpen, o.VacancyOpen = count(spans, fault, end)
	switch {
	case old == nil || old.Why == string(history.Left):
		o.Old = oldGone
	case old.Open && resumed == end:
		o.Old = oldPaused
	case old.Open && next == nil:
		o.Old = oldKept
	case old.Open:
		o.Old = oldNever
	default:
		o.Old = oldStopped
		if next != nil {
			o.Late = old.To - max(next.From, resumed)
		}
	}
	return o
}

// without takes the time of one span out of the others.
func without(spans []span, out span) []span {
	var rest []span
	for _, s := range spans {
		if before := (span{s.from, min(s.to, out.from)}); before.from < before.to {
			rest = append(rest, before)
		}
		if after := (span{max(s.from, out.to), s.to}); after.from < after.to {
			rest = append(rest, after)
		}
	}
	return rest
}

// count returns for how long, between two instants, more than one span lasted, and none; and
// whether that was so at the end.
func count(spans []span, from, to time.Duration) (many, none time.Duration, manyAtEnd, noneAtEnd bool) {
	edges := []time.Duration{from, to}
	for _, s := range spans {
		edges = append(edges, min(max(s.from, from), to), min(max(s.to, from), to))
	}
	slices.Sort(edges)
	for i, edge := range edges[1:] {
		length := edge - edges[i]
		if length == 0 {
			continue
		}
		n := 0
		for _, s := range spans {
			if s.from <= edges[i] && edge <= s.to {
				n++
			}
		}
		manyAtEnd, noneAtEnd = n > 1, n == 0
		switch {
		case n > 1:
			many += length
		case n == 0:
			none += length
		}
	}
	return many, none, manyAtEnd, noneAtEnd
}
