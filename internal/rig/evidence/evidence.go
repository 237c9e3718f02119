//go:build linux

package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/store"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// The rules beside those of package history.
const (
	Lost         history.Rule = "lost"         // a write that was acknowledged is not there
	Invented     history.Rule = "invented"     // a write is there that nobody made, or that was refused
	Regression   history.Rule = "regression"   // the store accepted a token smaller than one before
	Unfenced     history.Rule = "unfenced"     // a write of a leader that had been succeeded, on condition of its member
	Believed     history.Rule = "believed"     // a leader that had been succeeded was told that it led, or did not ask, and wrote to the store
	Linearizable history.Rule = "linearizable" // guarded writes that no order explains
	Told         history.Rule = "told"         // a leader was deposed, and not told of it
)

// The kinds of faults that are acts of operators on a leader.
const (
	Remove     = "remove"
	EndSession = "end-session"
)

// Recovery is what everything else may take but the end of a session: the coordinator
// elects a leader, clients find it again, a waiter looks anew, on a machine that is
// busy.
const Recovery = 5 * time.Second

// Evidence is what a run leaves behind.
type Evidence struct {
	History *history.History
	Ops     []worker.Op              // of all workers
	Stores  map[string][]store.Write // by election
	Records map[string]string        // what the guarded records held at the end, by name
	// Rules are the bounds that hold on this coordinator. A vacancy is counted anew from
	// each fault that may prolong it.
	Rules history.Rules
}

// Check returns what the evidence shows to be broken, in order of time.
func (e *Evidence) Check() []history.Violation {
	var out []history.Violation
	for _, election := range e.Elections() {
		out = append(out, WithOnsets(e.History, election, e.Rules.Vacancy).Check(e.Rules)...)
		wins := WinsOf(e.History.Terms(election))
		out = append(out, told(e.History, election)...)
		out = append(out, e.CheckStore(election, wins)...)
		for _, target := range []string{worker.Counter, worker.Last} {
			out = append(out, e.checkRecord(election, target, wins)...)
		}
	}
	slices.SortStableFunc(out, func(a, b history.Violation) int { return cmp.Compare(a.From, b.From) })
	return out
}

// Elections returns the elections of which anything was noted.
func (e *Evidence) Elections() []string {
	out := e.History.Elections()
	for _, op := range e.Ops {
		if !slices.Contains(out, op.Election) {
			out = append(out, op.Election)
		}
	}
	return out
}

// Wins are the terms of an election by token.
type Wins struct {
	terms []history.Term
	// next is, for each term, the first instant at which a term with a larger token
	// lasted.
	next []time.Duration
}

// Never is an instant that does not come.
const Never = 1<<63 - 1

func WinsOf(terms []history.Term) Wins {
	w := Wins{terms: slices.Clone(terms), next: make([]time.Duration, len(terms))}
	slices.SortStableFunc(w.terms, func(a, b history.Term) int { return cmp.Compare(a.Token, b.Token) })
	first := time.Duration(Never)
	for i := len(w.terms) - 1; i >= 0; i-- {
		w.next[i] = first
		first = min(first, w.terms[i].From)
	}
	return w
}

// After returns the first instant at which a term lasted that comes after that with the
// token.
func (w Wins) After(token uint64) time.Duration {
	i := slices.IndexFunc(w.terms, func(t history.Term) bool { return t.Token > token })
	if i < 0 {
		return Never
	}
	return min(w.terms[i].From, w.next[i])
}

// deposed reports whether an operator had deposed the leader with the token by then:
// one that is cut off cannot know.
func (w Wins) deposed(token uint64, at time.Duration) bool {
	i, ok := slices.BinarySearchFunc(w.terms, token, func(t history.Term, token uint64) int { return cmp.Compare(t.Token, token) })
	return ok && w.terms[i].Deposed && w.terms[i].DeposedAt <= at
}

// told looks for leaders that an operator deposed and that led on, although nothing was in
// the way of their being told. It counts from when the operator had been answered.
func told(h *history.History, election string) (out []history.Violation) {
	for _, t := range h.Terms(election) {
		i := slices.IndexFunc(h.Faults, func(f history.Fault) bool {
			return deposes(f) && f.Target == t.Candidate && t.Deposed && f.From >= t.DeposedAt
		})
		if i < 0 {
			continue
		}
		deposed := max(t.From, h.Faults[i].To)
		if t.LedUntil()-deposed <= Recovery {
			continue
		}
		if !slices.ContainsFunc(h.Faults, func(f history.Fault) bool {
			return !deposes(f) && (f.Target == "" || f.Target == t.Candidate) && f.From <= deposed+Recovery && t.DeposedAt <= f.To
		}) {
			out = append(out, history.Violation{
				Rule: Told, Election: election, Candidates: []string{t.Candidate}, From: deposed, To: t.LedUntil(),
				Text: fmt.Sprintf("%s (token %d) was deposed and led on for %v", t.Candidate, t.Token, t.LedUntil()-deposed),
			})
		}
	}
	return out
}

// deposes reports whether a fault is an operator's act on a leader.
func deposes(f history.Fault) bool { return f.Kind == Remove || f.Kind == EndSession }

// name is what makes a write of an election unique.
type name struct{ token, seq uint64 }

// CheckStore compares what the store of an election decided with what the writers were
// told, and with who led.
func (e *Evidence) CheckStore(election string, w Wins) (out []history.Violation) {
	bad := func(rule history.Rule, candidate string, at time.Duration, format string, args ...any) {
		out = append(out, history.Violation{
			Rule: rule, Election: election, Candidates: []string{candidate}, From: at, To: at, Text: fmt.Sprintf(format, args...),
		})
	}
	there := make(map[name]store.Write)
	var top store.Write // the accepted write with the largest token
	for _, s := range e.Stores[election] {
		n := name{s.Token, s.Seq}
		if _, twice := there[n]; twice {
			bad(Invented, s.Candidate, s.At, "the store has write %d of token %d twice", s.Seq, s.Token)
		}
		there[n] = s
		if next := w.After(s.Token); next < s.Checked && !w.deposed(s.Token, s.Checked) {
			bad(Believed, s.Candidate, s.Checked, "%s (token %d) was told that it led, or did not ask, %v after a later term had been won",
				s.Candidate, s.Token, s.Checked-next)
		}
		switch {
		case s.Refused > 0:
		case s.Token < top.Token:
			bad(Regression, s.Candidate, s.At, "the store accepted write %d of token %d after one of token %d", s.Seq, s.Token, top.Token)
		default:
			top = s
		}
	}
	for _, op := range e.Ops {
		if op.Election != election || op.Target != worker.File {
			continue
		}
		s, ok := there[name{op.Token, op.Seq}]
		delete(there, name{op.Token, op.Seq})
		switch {
		case op.Outcome == worker.OK && (!ok || s.Refused > 0):
			bad(Lost, op.Candidate, op.From, "write %d of token %d was acknowledged, and is not in the store", op.Seq, op.Token)
		case op.Outcome == worker.Refused && ok && s.Refused == 0:
			bad(Invented, op.Candidate, op.From, "write %d of token %d was refused, and is in the store", op.Seq, op.Token)
		}
	}
	for n, s := range there {
		bad(Invented, s.Candidate, s.At, "the store has write %d of token %d, which nobody made", n.seq, n.token)
	}
	return out
}
