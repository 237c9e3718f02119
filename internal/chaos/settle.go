//go:build linux

package chaos

import (
	"slices"
	"time"

	"github.com/succession-dev/succession/internal/history"
)

// waking is how long a process that was paused may take to note what it finds.
const waking = time.Second

// settle returns the history as it is to be judged. A process that is paused does
// nothing, and can note the end of its term only when it goes on. What it notes then
// counts from the deadline that the term had, or from the pause where that came later:
// if it wrote anything in between, the store knows.
func settle(h *history.History) *history.History {
	type row struct{ candidate, election string }
	out := &history.History{Faults: h.Faults}
	last := make(map[row]time.Duration) // what the candidate noted before
	stale := make(map[row]uint64)       // the token of a term that was over before it was noted as won
	for _, e := range h.Events {
		if e.Kind == history.Won && overBefore(h, e) {
			stale[row{e.Candidate, e.Election}] = e.Token
			continue
		}
		r := row{e.Candidate, e.Election}
		if ends(e.Kind) && e.Token > 0 && e.Token == stale[r] {
			continue
		}
		if p, ok := pauseBefore(h, e); ok && ends(e.Kind) && 0 < e.Deadline && e.Deadline < e.At {
			e.At = max(min(e.At, max(e.Deadline, p.From)), last[r])
		}
		if e.Kind != history.Deposed { // which an operator has noted
			last[r] = e.At
		}
		out.Events = append(out.Events, e)
	}
	return history.Merge(out)
}

func ends(k history.Kind) bool {
	return k == history.Ended || k == history.CheckFailed || k == history.Resigned || k == history.Left
}

// pauseBefore returns the pause of the event's candidate that delayed its note.
func pauseBefore(h *history.History, e history.Event) (history.Fault, bool) {
	i := slices.IndexFunc(h.Faults, func(f history.Fault) bool {
		return f.Kind == "pause" && f.Target == e.Candidate && f.From <= e.At && e.At <= f.To+waking
	})
	if i < 0 {
		return history.Fault{}, false
	}
	return h.Faults[i], true
}

// overBefore reports whether the term had reached its deadline when its win was noted,
// because a pause lay between the win and the note.
func overBefore(h *history.History, won history.Event) bool {
	if _, paused := pauseBefore(h, won); !paused {
		return false
	}
	return slices.ContainsFunc(h.Events, func(e history.Event) bool {
		return e.Candidate == won.Candidate && e.Election == won.Election && e.Token == won.Token &&
			ends(e.Kind) && 0 < e.Deadline && e.Deadline <= won.At
	})
}
