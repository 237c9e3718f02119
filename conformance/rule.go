package conformance

import (
	"slices"
	"strings"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/conformance/internal/faults"
	"github.com/succession-dev/succession/conformance/internal/guarantees"
	"github.com/succession-dev/succession/conformance/internal/laws"
	"github.com/succession-dev/succession/conformance/internal/recipes"
)

// A Rule is one promise, with a check that finds out whether it is kept.
type Rule struct {
	// ID is the group that the rule belongs to, a dot, and a name. It does not change from
	// version to version.
	ID string
	// Title says the rule in a few words.
	Title string
	// Text says the rule in full, and for how long it waits.
	Text string
	// Needs are the faults and abilities without which the rule cannot be exercised.
	Needs []Fault

	rule engine.Rule
}

// Group returns the name of the group that the rule belongs to: "L1", "G10".
func (r Rule) Group() string {
	group, _, _ := strings.Cut(r.ID, ".")
	return group
}

// Alone reports whether the rule disturbs the whole coordinator, and so the clients of other
// rules. Such a rule never runs beside others.
func (r Rule) Alone() bool {
	return slices.ContainsFunc(r.Needs, func(f Fault) bool { return slices.Contains(disturbing, f) })
}

// A Group is a group of rules: for one law of package backend, one guarantee of the project, or one
// other part of the contract.
type Group struct{ Name, Title string }

// Groups returns all groups, in the order of the report.
func Groups() []Group { return slices.Clone(groups) }

var groups = []Group{
	{"L1", "Join adds exactly one member, at the end"},
	{"L2", "Ahead and Line are fresh"},
	{"L3", "Gone wakes for its member alone, and never misses"},
	{"L4", "Leave is idempotent and guarded"},
	{"L5", "A session ends once and for all"},
	{"L6", "The deadline is never late"},
	{"L7", "Nothing but the record and the members"},
	{"L8", "Values are kept as they are"},
	{"L9", "Shared members wait for the others alone"},
	{"L10", "Items outlive their session, and go by a guard alone"},
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
	{"Choice", "Who is to lead, beyond the order of the line"},
	{"Lock", "The locks of package lock"},
	{"Queue", "The queues of package queue"},
	{"Barrier", "The barriers of package barrier"},
	{"Group", "The groups of package group"},
	{"Value", "The values of package record"},
	{"Task", "The tasks of package task"},
	{"Fault", "All of it, under each fault that there is"},
}

// rules are all rules, in the order of groups.
var rules = func() (all []Rule) {
	for _, r := range slices.Concat(laws.Rules, guarantees.Rules, recipes.Rules, faults.Rules) {
		all = append(all, Rule{r.ID, r.Title, r.Text, r.Needs, r})
	}
	return all
}()

// Rules returns all rules, in the order of the report.
func Rules() []Rule { return slices.Clone(rules) }
