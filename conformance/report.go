package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Status is how a rule fared.
type Status string

// The statuses of a rule.
const (
	Passed       Status = "passed"
	Failed       Status = "failed"
	Waived       Status = "waived"        // it failed, and the harness says why it may
	NotExercised Status = "not exercised" // a fault is missing: nothing is known
)

// A Result is how one rule fared.
type Result struct {
	ID     string        `json:"id"`
	Title  string        `json:"title"`
	Rule   string        `json:"rule"`
	Status Status        `json:"status"`
	Took   time.Duration `json:"took"` // in nanoseconds; virtual in a testing/synctest bubble

	// Reason is why the rule was waived or not exercised.
	Reason string `json:"reason,omitempty"`
	// Symptom is what went wrong, in a sentence, where the rule failed or was waived.
	Symptom string `json:"symptom,omitempty"`
	// Timeline is what the clients did, in order, where the rule failed or was
	// waived.
	Timeline []string `json:"timeline,omitempty"`
	// History is who led when, and which fault was there: lines of JSON, where the rule
	// has candidates, and failed or was waived.
	History []string `json:"history,omitempty"`
	// Files are where the history and its picture were written: ID.jsonl and ID.svg.
	Files []string `json:"files,omitempty"`

	// Undeclared says that the harness does not say why the fault is missing.
	Undeclared bool `json:"undeclared,omitempty"`
}

// ok reports whether the result lets a run pass.
func (r Result) ok() bool { return r.Status != Failed && !r.Undeclared }

// String returns the result for people: one line, or with symptom, rule and
// timeline where there is something to see.
func (r Result) String() string {
	switch r.Status {
	case Passed:
		s := fmt.Sprintf("%s %s: passed (%v)", r.ID, r.Title, r.Took.Round(time.Millisecond))
		if r.Files != nil {
			s += "; history: " + strings.Join(r.Files, ", ")
		}
		return s
	case NotExercised:
		s := fmt.Sprintf("%s %s: not exercised (%s)", r.ID, r.Title, r.Reason)
		if r.Undeclared {
			s += "; provide the fault, or say in Harness.Lacks why it cannot be had"
		}
		return s
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", r.ID, r.Title, r.Status)
	if r.Reason != "" {
		fmt.Fprintf(&b, " (%s)", r.Reason)
	}
	fmt.Fprintf(&b, "\n  symptom: %s\n  rule:    %s\n           see RULES.md, %s", r.Symptom, r.Rule, r.ID)
	if r.Files != nil {
		fmt.Fprintf(&b, "\n  history: %s", strings.Join(r.Files, ", "))
	}
	if len(r.Timeline) > 0 {
		b.WriteString("\n  timeline:")
		for _, line := range r.Timeline {
			b.WriteString("\n    " + line)
		}
	}
	return b.String()
}

// A Report is how a run went.
type Report struct {
	Name    string        `json:"name"`
	Results []Result      `json:"results"` // in the order of [Rules]
	Took    time.Duration `json:"took"`
	// Invalid is what is wrong with the harness; nothing was run then.
	Invalid string `json:"invalid,omitempty"`
	// Interrupted says that the context ended before all rules had run.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Count returns how many rules have the status.
func (r *Report) Count(s Status) int {
	n := 0
	for _, res := range r.Results {
		if res.Status == s {
			n++
		}
	}
	return n
}

// Err returns nil if every rule has passed, or was waived or not exercised for
// a reason that the harness gives.
func (r *Report) Err() error {
	if r.Invalid != "" {
		return errors.New(r.Invalid)
	}
	var bad []string
	for _, res := range r.Results {
		if !res.ok() {
			bad = append(bad, res.ID)
		}
	}
	switch {
	case len(bad) > 0:
		return fmt.Errorf("conformance: %s does not conform: %s", r.Name, strings.Join(bad, ", "))
	case r.Interrupted:
		return fmt.Errorf("conformance: the run on %s was interrupted", r.Name)
	case r.Count(Passed) == 0:
		return fmt.Errorf("conformance: no rule passed on %s", r.Name)
	}
	return nil
}

// String returns the summary in one line:
//
//	zookeeper: 41 passed, 0 failed, 1 waived (L2.cost: …), 3 not exercised (no Restart: …)
func (r *Report) String() string {
	if r.Invalid != "" {
		return r.Invalid
	}
	s := fmt.Sprintf("%s: %d passed, %d failed", r.Name, r.Count(Passed), r.Count(Failed))
	if ids := r.ids(Failed); ids != nil {
		s += " (" + strings.Join(ids, ", ") + ")"
	}
	s += fmt.Sprintf(", %d waived", r.Count(Waived))
	var waived, missing []string
	for _, res := range r.Results {
		switch res.Status {
		case Waived:
			waived = append(waived, res.ID+": "+res.Reason)
		case NotExercised:
			missing = append(missing, res.Reason)
		}
	}
	if waived != nil {
		s += " (" + strings.Join(waived, "; ") + ")"
	}
	s += fmt.Sprintf(", %d not exercised", r.Count(NotExercised))
	if missing != nil {
		slices.Sort(missing)
		s += " (" + strings.Join(slices.Compact(missing), "; ") + ")"
	}
	if r.Interrupted {
		s += ", interrupted"
	}
	return s
}

func (r *Report) ids(s Status) []string {
	var ids []string
	for _, res := range r.Results {
		if res.Status == s {
			ids = append(ids, res.ID)
		}
	}
	return ids
}

// Slowest returns the n results that took longest.
func (r *Report) Slowest(n int) []Result {
	out := slices.Clone(r.Results)
	slices.SortStableFunc(out, func(a, b Result) int { return int(b.Took - a.Took) })
	return out[:min(n, len(out))]
}

// add puts res in its place.
func (r *Report) add(res Result) {
	r.Results = append(r.Results, res)
	place := make(map[string]int, len(rules))
	for i, rule := range rules {
		place[rule.ID] = i
	}
	slices.SortStableFunc(r.Results, func(a, b Result) int { return place[a.ID] - place[b.ID] })
}
