package history

import (
	"cmp"
	"slices"
	"time"
)

// A History is a list of notes in order of time. Events of the same instant are in the order
// in which they were noted, if one process noted them.
type History struct {
	Events []Event
	Faults []Fault
}

// Merge returns one history of what several processes noted. They must share one clock.
func Merge(hs ...*History) *History {
	var out History
	for _, h := range hs {
		out.Events = append(out.Events, h.Events...)
		out.Faults = append(out.Faults, h.Faults...)
	}
	slices.SortStableFunc(out.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(out.Faults, func(a, b Fault) int { return cmp.Compare(a.From, b.From) })
	return &out
}

// Span returns the first and the last instant in the history.
func (h *History) Span() (from, to time.Duration) {
	first := true
	tell := func(t time.Duration) {
		if first {
			from, to, first = t, t, false
		}
		from, to = min(from, t), max(to, t)
	}
	for _, e := range h.Events {
		tell(e.At)
	}
	for _, f := range h.Faults {
		tell(f.From)
		tell(f.To)
	}
	return from, to
}

// Elections returns the names of the elections, in the order of their first events.
func (h *History) Elections() []string {
	var out []string
	for _, e := range h.Events {
		if !slices.Contains(out, e.Election) {
			out = append(out, e.Election)
		}
	}
	return out
}

// Candidates returns the candidates of an election, in the order of their first
// events.
func (h *History) Candidates(election string) []string {
	var out []string
	for _, e := range h.Events {
		if e.Election == election && !slices.Contains(out, e.Candidate) {
			out = append(out, e.Candidate)
		}
	}
	return out
}

// A span is a candidate's time in line.
type span struct {
	candidate string
	from, to  time.Duration
	deposed   bool // an operator ended it
}

// standing returns the times in which candidates stood in the line of an election.
func (h *History) standing(election string) []span {
	var out []span
	open := make(map[string]int) // candidate to its index in out
	_, end := h.Span()
	for _, e := range h.Events {
		if e.Election != election {
			continue
		}
		i, stands := open[e.Candidate]
		switch {
		case e.Kind == Joined && !stands:
			open[e.Candidate] = len(out)
			out = append(out, span{candidate: e.Candidate, from: e.At, to: end})
		case stands && (e.Kind == Left || e.Kind == Deposed):
			out[i].to, out[i].deposed = e.At, e.Kind == Deposed
			delete(open, e.Candidate)
		}
	}
	return out
}
