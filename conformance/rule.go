package conformance

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Rule is one promise, and how to find out whether it is kept.
type Rule struct {
	// ID is stable: the law or guarantee that the rule belongs to, a dot, and a
	// name.
	ID string
	// Title is the rule in a few words.
	Title string
	// Text is the rule in full, waits included.
	Text string
	// Needs is what a harness must be able to do for the rule to be exercised.
	Needs []Fault

	check func(*trial)
}

// Group returns the law or guarantee that the rule belongs to: "L1", "G10".
func (r Rule) Group() string {
	group, _, _ := strings.Cut(r.ID, ".")
	return group
}

// alone reports whether the rule disturbs clients other than its own.
func (r Rule) alone() bool {
	return slices.ContainsFunc(r.Needs, func(f Fault) bool { return slices.Contains(disturbing, f) })
}

// groups are the laws of package backend and the guarantees of the project, with
// what lies beside them.
var groups = []struct{ name, title string }{
	{"L1", "Join adds exactly one member, at the end"},
	{"L2", "Ahead and Line are fresh"},
	{"L3", "Gone wakes for its member alone, and never misses"},
	{"L4", "Leave is idempotent and guarded"},
	{"L5", "A session ends once and for all"},
	{"L6", "The deadline is never late"},
	{"L7", "Nothing but the record and the members"},
	{"L8", "Values are kept as they are"},
	{"Pin", "Pinned members and the seal"},
	{"Records", "Records with versions"},
	{"G1", "One leader"},
	{"G2", "Tokens grow"},
	{"G3", "Guarded writes"},
	{"G4", "Succession"},
	{"G5", "No herd"},
	{"G6", "No ghosts"},
	{"G7", "Told"},
	{"G8", "No stall"},
	{"G9", "Clean end"},
	{"G10", "Observers"},
	{"Run", "The contract of elect.Election.Run"},
	{"Fault", "All of it, under each fault that there is"},
}

// rules are all rules, in the order of groups.
var rules []Rule

// Filled here and not in the declaration: the checks refer to what refers to rules.
func init() {
	rules = slices.Concat(
		joinRules, aheadRules, goneRules, leaveRules, sessionRules, deadlineRules,
		folderRules, valueRules, pinRules, recordRules,
		leaderRules, tokenRules, guardRules, successionRules, herdRules, ghostRules,
		toldRules, stallRules, cleanRules, observeRules, runRules, faultRules(),
	)
}

// Rules returns all rules, in the order of the report.
func Rules() []Rule { return slices.Clone(rules) }

// WriteRules writes all rules for people, as Markdown.
func WriteRules(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Rules\n\n")
	b.WriteString("What package conformance checks, generated from its data (`go generate ./conformance`). IDs are stable.\n\n")
	b.WriteString("TTL, Slack and Latency are fields of the harness. *Soon* is within Latency; *after a crash* is within\n")
	b.WriteString("TTL + Slack + Latency; *after recovery* is within 3 TTL + Slack + 3 Latency; *after its slow re-check* is within\n")
	b.WriteString("1.25 TTL + Latency, and 12.5 s + Latency where sessions have no time.\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "\n## %s %s\n\n| ID | Title | Rule | Needs |\n|---|---|---|---|\n", g.name, g.title)
		for _, r := range rules {
			if r.Group() == g.name {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.ID, r.Title, r.Text, needs(r))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func needs(r Rule) string {
	names := make([]string, len(r.Needs))
	for i, f := range r.Needs {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}
