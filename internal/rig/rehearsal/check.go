//go:build linux

package rehearsal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// The rules beside those of chaos runs.
const (
	// Wronged is a write that the store refused of a leader whose term had not ended.
	Wronged history.Rule = "wronged"
	// Slow is a step that cost more than the resignation of a leader does.
	Slow history.Rule = "slow"
)

// busy is by how much a planned handover may take longer than the slowest resignation
// that was measured: a machine that is busy, and no session that has to end.
const busy = time.Second

// aftermath is what may come to the end of a session after a fault: clients find a server
// again, a waiter finds the seal, on a machine that is busy. It is less than the recovery
// of chaos runs, where servers are gone for long.
const aftermath = 2 * busy

// Check returns what the files show to be broken, in order of time.
func (r *Report) Check() []history.Violation {
	var out []history.Violation
	e := &r.Evidence
	h := r.judged()
	rules := e.Rules
	rules.Vacancy = 0 // the line changes too often here; see waits
	for _, v := range h.Check(rules) {
		if v.Rule != history.Order {
			out = append(out, v)
		}
	}
	for _, election := range e.Elections() {
		out = append(out, r.checkOrder(h, election)...)
		out = append(out, r.checkVacancies(h, election)...)
		terms := h.Terms(election)
		w := evidence.WinsOf(terms)
		out = append(out, e.CheckStore(election, w)...)
		out = append(out, checkRefused(e, h, election)...)
		out = append(out, checkGuard(e, election, w)...)
	}
	slices.SortStableFunc(out, func(a, b history.Violation) int { return cmp.Compare(a.From, b.From) })
	return out
}

// judged is the history as it is to be judged: a candidate that is cut off from one
// coordinator, and stands first on the other, keeps all others from leading.
func (r *Report) judged() *history.History {
	h := &history.History{Events: r.Evidence.History.Events, Faults: slices.Clone(r.Evidence.History.Faults)}
	for _, f := range h.Faults {
		if f.Kind == halfCut {
			f.Target = ""
			h.Faults = append(h.Faults, f)
		}
	}
	return history.Merge(h)
}

// checkOrder looks at the order of succession on each coordinator from one cutover to
// the next. A place that was taken in between is on either of them, and is passed over.
func (r *Report) checkOrder(h *history.History, election string) (out []history.Violation) {
	joined := make(map[string]time.Duration)
	eras := make(map[int]*history.History)
	for _, e := range h.Events {
		switch {
		case e.Election != election:
		case e.Kind == history.Joined:
			joined[e.Candidate] = e.At
		case e.Kind == history.Won:
			if era, ok := r.era(joined[e.Candidate]); ok {
				if eras[era] == nil {
					eras[era] = new(history.History)
				}
				eras[era].Events = append(eras[era].Events, e)
			}
		}
	}
	for _, era := range eras {
		for _, v := range era.Check(history.Rules{}) {
			if v.Rule == history.Order {
				out = append(out, v)
			}
		}
	}
	return out
}

// era returns how many cutovers there had been; false during one.
func (r *Report) era(at time.Duration) (n int, ok bool) {
	for _, l := range r.Legs {
		switch {
		case at < l.Asked:
			return n, true
		case at <= l.Moved:
			return n, false
		}
		n++
	}
	return n, true
}

// checkVacancies compares the times without a leader with what an ordinary handover
// costs: under faults that of a crash, and in the planned steps of a leg without faults
// that of a resignation.
func (r *Report) checkVacancies(h *history.History, election string) (out []history.Violation) {
	bad := func(rule history.Rule, s stretch, format string, args ...any) {
		out = append(out, history.Violation{
			Rule: rule, Election: election, From: s.from, To: s.to,
			Text: fmt.Sprintf("nobody led for %v ", s.length()) + fmt.Sprintf(format, args...),
		})
	}
	rules := r.Evidence.Rules
	for _, s := range r.waits(h, election) {
		if s.length() > rules.Vacancy {
			bad(history.Vacancy, s, "since the last fault; %v is what a crash may cost", rules.Vacancy)
		}
	}
	for _, l := range r.Legs {
		if l.Stormy {
			continue
		}
		for _, s := range within(vacant(h.Terms(election)), l.Began, l.Ended) {
			if s.length() > r.planned() {
				bad(Slow, s, "on the way from %s to %s, where there were no faults; %v is what a resignation may cost", l.From, l.To, r.planned())
			}
		}
	}
	return out
}

// planned is what a planned handover may cost.
func (r *Report) planned() time.Duration {
	var slowest time.Duration
	for _, o := range r.Ordinary {
		if !o.Crash {
			slowest = max(slowest, o.To-o.From)
		}
	}
	return slowest + busy
}

// A stretch is a span of time.
type stretch struct{ from, to time.Duration }

func (s stretch) length() time.Duration { return s.to - s.from }

// vacant returns when nobody led, from the first term to the last.
func vacant(terms []history.Term) (out []stretch) {
	for i, t := range terms {
		if i == 0 {
			out = append(out, stretch{t.LedUntil(), t.LedUntil()})
			continue
		}
		free := &out[len(out)-1]
		if t.From > free.from {
			free.to = t.From
			out = append(out, stretch{t.LedUntil(), t.LedUntil()})
		} else {
			free.from = max(free.from, t.LedUntil())
			free.to = free.from
		}
	}
	if len(out) > 0 {
		out = out[:len(out)-1] // after the last term there is none to wait for
	}
	return out
}

// within returns the parts of stretches that lie between two instants.
func within(all []stretch, from, to time.Duration) (out []stretch) {
	for _, s := range all {
		if s = (stretch{max(s.from, from), min(s.to, to)}); s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}

// waits returns for how long nobody led, counted anew from each fault that may prolong
// it, and without the time in which one touched everybody.
func (r *Report) waits(h *history.History, election string) []stretch {
	all := vacant(h.Terms(election))
	for _, f := range evidence.WithOnsets(h, election, r.Evidence.Rules.Vacancy).Faults {
		if f.Target != "" {
			continue
		}
		all = append(within(all, 0, f.From), within(all, f.To, evidence.Never)...)
	}
	return all
}

// checkRefused holds each refused write against the store where its writer was told
// later that it still led: nobody but a later leader may have written with a larger token.
func checkRefused(e *evidence.Evidence, h *history.History, election string) (out []history.Violation) {
	terms := h.Terms(election)
	for _, s := range e.Stores[election] {
		if s.Refused == 0 {
			continue
		}
		i := slices.IndexFunc(terms, func(t history.Term) bool { return t.Token == s.Token && t.Candidate == s.Candidate })
		if i >= 0 && terms[i].LedUntil() < s.At {
			continue
		}
		out = append(out, history.Violation{
			Rule: Wronged, Election: election, Candidates: []string{s.Candidate}, From: s.At, To: s.At,
			Text: fmt.Sprintf("write %d of %s (token %d) was refused for token %d, and its term had not ended", s.Seq, s.Candidate, s.Token, s.Refused),
		})
	}
	return out
}

// checkGuard finds guarded writes that were let in after a later term had been won. What
// the records hold is not compared: each coordinator has its own.
func checkGuard(e *evidence.Evidence, election string, w evidence.Wins) (out []history.Violation) {
	for _, op := range e.Ops {
		if op.Election != election || op.Target == worker.File || op.Outcome != worker.OK {
			continue
		}
		if next := w.After(op.Token); next < op.From {
			out = append(out, history.Violation{
				Rule: evidence.Unfenced, Election: election, Candidates: []string{op.Candidate}, From: op.From, To: op.To,
				Text: fmt.Sprintf("guarded write %q to %s was let in %v after a later term had been won", op.Value, op.Target, op.From-next),
			})
		}
	}
	return out
}
