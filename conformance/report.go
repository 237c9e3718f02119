package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Status is the outcome of a rule.
type Status string

// The statuses of a rule.
const (
	Passed     Status = "passed"
	Failed     Status = "failed"
	Waived     Status = "waived"     // it failed, and the harness says why it may
	Impossible Status = "impossible" // this coordinator cannot have what the rule needs, or the rule is unfit for the harness
	NotWired   Status = "not wired"  // the harness does not provide what the rule needs, so nothing is known
	NotJudged  Status = "not judged" // the machine or the coordinator was too busy each time, so it is only known that nothing unsafe was seen
)

// A Result is the outcome of one rule, with all that helps to understand it.
type Result struct {
	ID     string        `json:"id"`
	Title  string        `json:"title"`
	Rule   string        `json:"rule"`
	Status Status        `json:"status"`
	Took   time.Duration `json:"took"` // in nanoseconds; virtual in a testing/synctest bubble

	// Reason is why the rule was waived, not judged, is impossible or is not wired.
	Reason string `json:"reason,omitempty"`
	// Missing is what the rule needs but cannot have, if it is impossible or not wired.
	Missing []Fault  `json:"missing,omitempty"`
	why     []string // for each of Missing; without them, the reason of Harness.Unfit
	// Disturbed says what was measured in each trial in which the machine was too busy. The
	// rule was run again after each, up to twice.
	Disturbed []string `json:"disturbed,omitempty"`
	// Symptom says in a sentence what went wrong, if the rule failed or was waived.
	Symptom string `json:"symptom,omitempty"`
	// Timeline is what the clients did, in order, if the rule failed or was waived.
	Timeline []string `json:"timeline,omitempty"`
	// History says, in lines of JSON, which candidate led when and which faults there were. It is
	// there if the rule has candidates, and failed or was waived.
	History []string `json:"history,omitempty"`
	// Files are the paths of the history (ID.jsonl) and its picture (ID.svg), if they were
	// written.
	Files []string `json:"files,omitempty"`
}

// skipped returns the message of a skipped subtest. It begins with "conformance: " and the
// status.
func (r Result) skipped() string {
	switch r.Status {
	case Waived:
		return fmt.Sprintf("conformance: %s: %v", r.Status, r)
	case NotJudged:
		return fmt.Sprintf("conformance: %s: %s %s\ncalm: not judged: %s: %s", r.Status, r.ID, r.Title, r.ID, r.Reason)
	}
	return fmt.Sprintf("conformance: %s: %s %s (%s)", r.Status, r.ID, r.Title, r.Reason)
}

// repeated returns what was measured in the trials after which the rule was run again.
func (r Result) repeated() []string {
	if r.Status == NotJudged {
		return r.Disturbed[:len(r.Disturbed)-1]
	}
	return r.Disturbed
}

// String returns the result for people: one line, which says also what went wrong, and after a failure the
// rule and the timeline.
func (r Result) String() string {
	switch r.Status {
	case Passed:
		s := fmt.Sprintf("%s %s: passed (%v)", r.ID, r.Title, r.Took.Round(time.Millisecond))
		if r.Files != nil {
			s += "; history: " + strings.Join(r.Files, ", ")
		}
		return s
	case Impossible, NotWired, NotJudged:
		return fmt.Sprintf("%s %s: %s (%s)", r.ID, r.Title, r.Status, r.Reason)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", r.ID, r.Title, r.Status)
	if r.Reason != "" {
		fmt.Fprintf(&b, " (%s)", r.Reason)
	}
	fmt.Fprintf(&b, ": %s\n  rule:    %s\n           see RULES.md, %s", r.Symptom, r.Rule, r.ID)
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

// A Report is the outcome of a run.
type Report struct {
	Name    string        `json:"name"`
	Results []Result      `json:"results"` // in the order of [Rules]
	Took    time.Duration `json:"took"`
	// Invalid says what is wrong with the harness. If it is not empty, no rule was run.
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

// exercised says in a line how many rules of each suite were exercised in the run, why others were not, and how many of those that
// were say nothing or may fail.
func (r *Report) exercised() string {
	var parts []string
	for _, suite := range []Suite{Driver, Recipes} {
		done, all := 0, 0
		for _, res := range r.Results {
			if (Rule{ID: res.ID}).Suite() != suite {
				continue
			}
			all++
			if res.Status != Impossible && res.Status != NotWired {
				done++
			}
		}
		if all > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d rules of suite %s", done, all, suite))
		}
	}
	line := fmt.Sprintf("conformance: %s: exercised %s; %d impossible, %d not wired",
		r.Name, strings.Join(parts, " and "), r.Count(Impossible), r.Count(NotWired))
	for _, s := range []Status{Waived, NotJudged} { // they were exercised, and did not pass
		if n := r.Count(s); n > 0 {
			line += fmt.Sprintf(", %d %s", n, s)
		}
	}
	return line
}

// Err returns nil if at least one rule has passed, none has failed, and the run was not
// interrupted. The other rules may be waived, impossible, or not wired, and one in twenty not
// judged, or one of fewer than forty.
func (r *Report) Err() error {
	if r.Invalid != "" {
		return errors.New(r.Invalid)
	}
	bad := r.ids(Failed)
	switch {
	case len(bad) > 0:
		return fmt.Errorf("conformance: %s does not conform: %s", r.Name, strings.Join(bad, ", "))
	case r.Interrupted:
		return fmt.Errorf("conformance: the run on %s was interrupted", r.Name)
	case r.tooBusy() != nil:
		return r.tooBusy()
	case r.Count(Passed) == 0:
		return fmt.Errorf("conformance: no rule passed on %s", r.Name)
	}
	return nil
}

// tooBusy returns an error if more than one in twenty of the rules that were exercised were not
// judged. Of a few rules, one may always be, if another has passed.
func (r *Report) tooBusy() error {
	n, all := r.Count(NotJudged), r.Count(Passed)+r.Count(Failed)+r.Count(Waived)+r.Count(NotJudged)
	if n == 0 || n <= max(1, all/20) && r.Count(Passed) > 0 {
		return nil
	}
	return fmt.Errorf("conformance: the machine or the coordinator was too busy to judge %d of %d rules on %s: %s; run them again with less beside them, or with a session time and a Latency that fit the coordinator",
		n, all, r.Name, strings.Join(r.ids(NotJudged), ", "))
}

// Counts says how many rules have each status.
type Counts struct {
	Passed     int `json:"passed"`
	Failed     int `json:"failed"`
	Waived     int `json:"waived"`
	Impossible int `json:"impossible"`
	NotWired   int `json:"not_wired"`
	NotJudged  int `json:"not_judged"`
}

// String returns the counts in words. Rules that were not judged are named only if there are any.
func (c Counts) String() string {
	s := fmt.Sprintf("%d passed, %d failed, %d waived, %d impossible, %d not wired",
		c.Passed, c.Failed, c.Waived, c.Impossible, c.NotWired)
	if c.NotJudged > 0 {
		s += fmt.Sprintf(", %d not judged", c.NotJudged)
	}
	return s
}

// Counts returns [Report.Count] for each status.
func (r *Report) Counts() Counts {
	return Counts{r.Count(Passed), r.Count(Failed), r.Count(Waived), r.Count(Impossible), r.Count(NotWired), r.Count(NotJudged)}
}

// MarshalJSON implements [json.Marshaler]. It adds the counts to the fields of the report.
func (r *Report) MarshalJSON() ([]byte, error) {
	type report Report
	return json.Marshal(struct {
		*report
		Counts Counts `json:"counts"`
	}{(*report)(r), r.Counts()})
}

// String returns the summary in one line:
//
//	zookeeper: 171 passed, 0 failed, 1 waived (L2.cost: …), 3 impossible (no Compact: …), 2 not wired (Clock, Drop)
func (r *Report) String() string {
	if r.Invalid != "" {
		return r.Invalid
	}
	s := fmt.Sprintf("%s: %d passed", r.Name, r.Count(Passed))
	count := func(status Status, separator string, details []string) {
		s += fmt.Sprintf(", %d %s", r.Count(status), status)
		if details != nil {
			s += " (" + strings.Join(details, separator) + ")"
		}
	}
	var waived, impossible, notWired []string
	for _, res := range r.Results {
		switch res.Status {
		case Waived:
			waived = append(waived, res.ID+": "+res.Reason)
		case Impossible:
			if res.why == nil { // the Result was not made by this package
				res.why = []string{res.Reason}
			}
			impossible = append(impossible, res.why...)
		case NotWired:
			for _, f := range res.Missing {
				notWired = append(notWired, string(f))
			}
		}
	}
	count(Failed, ", ", r.ids(Failed))
	count(Waived, "; ", waived)
	count(Impossible, "; ", distinct(impossible))
	count(NotWired, ", ", distinct(notWired))
	if busy := r.ids(NotJudged); busy != nil {
		count(NotJudged, ", ", busy)
	}
	if r.Interrupted {
		s += ", interrupted"
	}
	return s
}

func distinct(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
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

// add inserts res in the order of [Rules].
func (r *Report) add(res Result) {
	r.Results = append(r.Results, res)
	place := make(map[string]int, len(rules))
	for i, rule := range rules {
		place[rule.ID] = i
	}
	slices.SortStableFunc(r.Results, func(a, b Result) int { return place[a.ID] - place[b.ID] })
}
