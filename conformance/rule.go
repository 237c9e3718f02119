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

// Suite returns which suite the rule belongs to.
func (r Rule) Suite() Suite {
	for _, g := range groups {
		if g.Name == r.Group() {
			return g.Suite
		}
	}
	return ""
}

// isOf reports whether that is the name of the rule, of its group, or of its suite.
func (r Rule) isOf(name string) bool {
	return name == r.ID || name == r.Group() || name == string(r.Suite())
}

// A Suite is one of the two parts of the rules, which run on one engine. [Harness] Only can name it.
type Suite string

const (
	Driver  Suite = "driver"  // what a driver must keep, and what elections make of it
	Recipes Suite = "recipes" // what the recipes promise, one floor higher
)

// A Group is a group of rules: for one law of package backend, one guarantee of the project, or one
// other part of the contract.
type Group struct {
	Name, Title string
	Suite       Suite
}

// Groups returns all groups, in the order of the report.
func Groups() []Group { return slices.Clone(groups) }

var groups = []Group{
	{"L1", "Join adds exactly one member, at the end", Driver},
	{"L2", "Ahead and Line are fresh", Driver},
	{"L3", "Gone wakes for its member alone, and never misses", Driver},
	{"L4", "Leave is idempotent and guarded", Driver},
	{"L5", "A session ends once and for all", Driver},
	{"L6", "The deadline is never late", Driver},
	{"L7", "Nothing but the record and the members", Driver},
	{"L8", "Values are kept as they are", Driver},
	{"L9", "Shared members wait for the others alone", Driver},
	{"L10", "Items outlive their session, and go by a guard alone", Driver},
	{"Pin", "Pinned members and the seal", Driver},
	{"Records", "Records with versions", Driver},
	{"G1", "One leader", Driver},
	{"G2", "Tokens grow", Driver},
	{"G3", "Guarded writes", Driver},
	{"G4", "Succession", Driver},
	{"G5", "No herd", Driver},
	{"G6", "No ghosts", Driver},
	{"G7", "Told", Driver},
	{"G8", "No stall", Driver},
	{"G9", "Clean end", Driver},
	{"G10", "Observers", Driver},
	{"Run", "The contract of elect.Election.Run", Driver},
	{"Choice", "Who is to lead, beyond the order of the line", Driver},
	{"Lock", "The locks of package lock", Recipes},
	{"Queue", "The queues of package queue", Recipes},
	{"Barrier", "The barriers of package barrier", Recipes},
	{"Group", "The groups of package group", Recipes},
	{"Value", "The values of package record", Recipes},
	{"Task", "The tasks of package task", Recipes},
	{"Fault", "All of it, under each fault that there is", Driver},
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
