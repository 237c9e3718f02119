package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Rule is the name of something that every history must keep.
type Rule string

// The rules.
const (
	Overlap Rule = "overlap" // two terms at the same time
	Token   Rule = "token"   // a token that is not larger than that of a term before it
	Order   Rule = "order"   // a term won from a position behind somebody who won later
	Vacancy Rule = "vacancy" // nobody led for longer than a bound, although a candidate could have
	Late    Rule = "late"    // a term that ended after its deadline
)

// Rules say how a history is judged. The zero value forgives nothing and does not
// look for vacancies.
type Rules struct {
	// Notice is how much later than the fact a note may have been taken.
	Notice time.Duration
	// Vacancy is the longest time without a leader while a candidate that no fault touches
	// stands in line: the time that the coordinator takes to notice a crash, and the time
	// that succession takes. 0 does not look for vacancies.
	Vacancy time.Duration
}

// A Violation says which rule was broken, and where the history shows it.
type Violation struct {
	Rule       Rule
	Election   string
	Candidates []string // whose rows of the picture show it; the offender is the last
	From, To   time.Duration
	Text       string
}

func (v Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.head(), v.From, v.Text) }

// head returns the rule and the election.
func (v Violation) head() string {
	if v.Election == "" {
		return string(v.Rule)
	}
	return string(v.Rule) + " in " + v.Election
}

// Check returns what the history shows to be broken, in order of time.
func (h *History) Check(r Rules) []Violation {
	var out []Violation
	for _, election := range h.Elections() {
		terms := h.Terms(election)
		out = append(out, overlaps(terms, r.Notice)...)
		out = append(out, falls(terms)...)
		out = append(out, late(terms, r.Notice)...)
		if r.Vacancy > 0 {
			out = append(out, h.vacancies(election, terms, r)...)
		}
	}
	slices.SortStableFunc(out, func(a, b Violation) int { return cmp.Compare(a.From, b.From) })
	return out
}

// overlaps compares each term with all later ones, because a term may outlast several.
func overlaps(terms []Term, notice time.Duration) []Violation {
	var out []Violation
	for i, a := range terms {
		for _, b := range terms[i+1:] {
			from, to := max(a.From, b.From), min(a.until(), b.until())
			if to-from > notice {
				out = append(out, Violation{
					Rule: Overlap, Election: a.Election, Candidates: []string{a.Candidate, b.Candidate}, From: from, To: to,
					Text: fmt.Sprintf("%s (token %d) and %s (token %d) both led for %v", a.Candidate, a.Token, b.Candidate, b.Token, to-from),
				})
			}
		}
	}
	return out
}

// falls compares the token and the position of each term with the largest before it, so that
// one bad number is one violation. It skips terms whose member was taken away before they were
// won: nobody relies on them.
func falls(terms []Term) []Violation {
	var out []Violation
	fell := func(rule Rule, t, top *Term, format string, number, most uint64) {
		out = append(out, Violation{
			Rule: rule, Election: t.Election, Candidates: []string{top.Candidate, t.Candidate}, From: t.From, To: t.From,
			Text: fmt.Sprintf(format, t.Candidate, number, top.Candidate, most),
		})
	}
	var top, last *Term // with the largest token, and at the last position
	for i := range terms {
		t := &terms[i]
		if t.Deposed && t.DeposedAt <= t.From {
			continue
		}
		if top != nil && t.Token <= top.Token {
			fell(Token, t, top, "%s won with token %d after %s had won with %d", t.Token, top.Token)
		} else {
			top = t
		}
		if last != nil && 0 < t.Position && t.Position < last.Position {
			fell(Order, t, last, "%s won at position %d after %s, who stood behind it at %d", t.Position, last.Position)
		} else if t.Position > 0 {
			last = t
		}
	}
	return out
}

func late(terms []Term, notice time.Duration) []Violation {
	var out []Violation
	for _, t := range terms {
		if end := t.LedUntil(); t.Deadline > 0 && end-t.Deadline > notice {
			out = append(out, Violation{
				Rule: Late, Election: t.Election, Candidates: []string{t.Candidate}, From: t.Deadline, To: end,
				Text: fmt.Sprintf("the term of %s (token %d) ended %v after its deadline", t.Candidate, t.Token, end-t.Deadline),
			})
		}
	}
	return out
}

// vacancies looks for times without a leader in which a candidate stood in line that no fault
// touched.
func (h *History) vacancies(election string, terms []Term, r Rules) []Violation {
	var out []Violation
	for _, s := range h.standing(election) {
		free := []stretch{{s.from, s.to}}
		for _, f := range h.Faults {
			if f.touches(election, s.candidate) {
				free = cutOut(free, f.From, f.To)
			}
		}
		for _, t := range terms {
			free = cutOut(free, t.From, t.LedUntil())
		}
		for _, v := range free {
			if v.to-v.from > r.Vacancy+r.Notice {
				out = append(out, Violation{
					Rule: Vacancy, Election: election, Candidates: []string{s.candidate}, From: v.from, To: v.to,
					Text: fmt.Sprintf("nobody led for %v, and %s stood in line", v.to-v.from, s.candidate),
				})
			}
		}
	}
	return out
}

type stretch struct{ from, to time.Duration }

// cutOut returns what is left of the stretches without the time between from and to.
func cutOut(of []stretch, from, to time.Duration) []stretch {
	var out []stretch
	for _, s := range of {
		if to < s.from || s.to < from {
			out = append(out, s)
			continue
		}
		if s.from < from {
			out = append(out, stretch{s.from, from})
		}
		if to < s.to {
			out = append(out, stretch{to, s.to})
		}
	}
	return out
}
