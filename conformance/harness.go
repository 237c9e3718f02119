package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// A Harness connects the suite to one coordinator. Only Name, Open and TTL are
// required. New fields mean what they meant before where they are zero.
type Harness struct {
	// Name is how reports call the coordinator, such as "zookeeper 3.9.4".
	Name string

	// Open returns a new client of the coordinator at each call: independent of
	// all others, with a session of its own. The suite closes it. It is called
	// from several goroutines at once.
	Open func(ctx context.Context) (backend.Backend, error)

	// TTL is the session time in use, the shortest that the coordinator honours:
	// nearly all waits of the suite scale with it. For a coordinator whose
	// sessions have no time ([Deadlines] is lacking) it is a time in which a
	// change is sure to be seen.
	TTL time.Duration

	// Slack is how much later than TTL the coordinator ends the session of a
	// client that it does not hear from any more. 0 is none.
	Slack time.Duration

	// Latency is what a healthy call, a notification or a cancellation takes at
	// the very most. It is a bound for failures and does not slow down what
	// passes. 0 is two seconds.
	Latency time.Duration

	// Faults is what can be done to the coordinator and its clients.
	Faults Faults

	// Lacks says, for each fault that this coordinator cannot have, why. A rule that
	// needs it is reported as impossible, with that reason. A reason for a fault that
	// is there makes the run fail. The suite finds out by itself which abilities
	// ([Deadlines], [Records], [Pins]) a backend lacks.
	Lacks map[Fault]string

	// NotWired says, for faults that the coordinator could have and the harness does
	// not provide, why not. It may be left out: any fault that is neither provided nor
	// in Lacks is not wired, and so is a rule that needs it.
	NotWired map[Fault]string

	// Complete says that the harness is meant to leave nothing out: a fault that is
	// neither provided nor in Lacks makes the run fail.
	Complete bool

	// Waive says, by rule ID, why a rule may fail. A waiver for a rule that does not
	// exist, that was not exercised or that passes makes the run fail.
	Waive map[string]string

	// Only restricts the run to rules by ID ("L3.leave") or group ("L3"). Nil is
	// all.
	Only []string

	// Prefix begins the names of all elections and records that the suite uses,
	// each of which is new. Empty is "conformance".
	Prefix string

	// Report is a folder, made where it is missing, for the histories of the rules that
	// have candidates: who led when, under which fault, as lines of JSON (ID.jsonl) and
	// as a picture (ID.svg). Empty is none in [Check]. In [Run] it is the folder of
	// [testing.T.ArtifactDir] with go test -artifacts, and without it a temporary folder
	// for each rule that fails.
	Report string

	// Parallel is how many rules [Check] exercises at once. 0 is one. [Run] leaves
	// that to the -parallel flag of go test. Rules that disturb the whole
	// coordinator always run alone.
	Parallel int

	// Wrap, if not nil, surrounds each rule in [Run]: it calls rule exactly once,
	// with the t and the harness of its choice, and returns after it. It is for
	// a fresh coordinator per rule, and for a testing/synctest bubble.
	Wrap func(t *testing.T, rule func(t *testing.T, h Harness))

	reportsFailures bool // to a temporary folder, where Report is empty

	// election, if not nil, stands in for package elect: the suite's own tests have
	// rules fail on a flawed one.
	election election.Maker

	abilities *engine.Abilities // what the backend lacks, found out once in a run
}

// validate reports what is wrong with the harness itself.
func (h *Harness) validate() error {
	switch {
	case h.Name == "":
		return fmt.Errorf("conformance: Harness.Name is empty")
	case h.Open == nil:
		return fmt.Errorf("conformance: Harness.Open is nil")
	case h.TTL <= 0:
		return fmt.Errorf("conformance: Harness.TTL is %v; say the session time in use", h.TTL)
	case h.Slack < 0 || h.Latency < 0 || h.Parallel < 0:
		return fmt.Errorf("conformance: a field of Harness is negative")
	case h.Faults.Cluster != nil && !h.Faults.Cluster.whole():
		return fmt.Errorf("conformance: Faults.Cluster needs three servers or more, each with all but Isolate, and Leader and Of")
	}
	if err := h.validateFaults(); err != nil {
		return err
	}
	known := func(id string) bool {
		return slices.ContainsFunc(rules, func(r Rule) bool { return r.ID == id || r.Group() == id })
	}
	for _, id := range slices.Sorted(maps.Keys(h.Waive)) {
		switch {
		case !slices.ContainsFunc(rules, func(r Rule) bool { return r.ID == id }):
			return fmt.Errorf("conformance: Harness.Waive names %q, which is no rule", id)
		case h.Waive[id] == "":
			return fmt.Errorf("conformance: Harness.Waive[%s] gives no reason", id)
		}
	}
	for _, id := range h.Only {
		if !known(id) {
			return fmt.Errorf("conformance: Harness.Only names %q, which is neither a rule nor a group", id)
		}
	}
	return nil
}

// validateFaults reports what is wrong with what the harness says of faults.
func (h *Harness) validateFaults() error {
	for name, reasons := range map[string]map[Fault]string{"Lacks": h.Lacks, "NotWired": h.NotWired} {
		for _, f := range slices.Sorted(maps.Keys(reasons)) {
			_, lacking := h.Lacks[f]
			switch {
			case !slices.Contains(faultNames, f):
				return fmt.Errorf("conformance: Harness.%s names %q, which is no fault; there are %v", name, f, faultNames)
			case reasons[f] == "":
				return fmt.Errorf("conformance: Harness.%s[%s] gives no reason", name, f)
			case h.provides(f):
				return fmt.Errorf("conformance: Harness.%s[%s] is not needed any more: Faults.%s is there", name, f, f)
			case name == "NotWired" && (lacking || engine.IsAbility(f)):
				return fmt.Errorf("conformance: Harness.NotWired[%s]: it cannot be had there, or is an ability", f)
			}
		}
	}
	if !h.Complete {
		return nil
	}
	var open []string
	for _, f := range faultNames {
		if _, lacking := h.Lacks[f]; !engine.IsAbility(f) && !lacking && !h.provides(f) {
			open = append(open, string(f))
		}
	}
	if open != nil {
		return fmt.Errorf("conformance: Harness.Complete, and nothing is said of %s: provide them in Faults, or say in Lacks why the coordinator cannot have them", strings.Join(open, ", "))
	}
	return nil
}

func (h *Harness) selects(r Rule) bool {
	return h.Only == nil || slices.Contains(h.Only, r.ID) || slices.Contains(h.Only, r.Group())
}

// Missing says how r is reported where it cannot be exercised: [Impossible] or [NotWired],
// and why. The status is empty where it can, as far as the harness says; a run also finds
// out which abilities the backend lacks.
func (h *Harness) Missing(r Rule) (s Status, why string) {
	m := h.missing(r)
	return m.status, m.reason()
}

// missing is what a rule needs and there is not.
type missing struct {
	status Status // Impossible or NotWired; empty where there is all
	faults []Fault
	why    []string // of each of them
}

func (m missing) reason() string { return strings.Join(m.why, ", ") }

// missing is for [Harness.Missing]. A rule that needs what cannot be had is impossible,
// whatever else is not wired.
func (h *Harness) missing(r Rule) missing {
	m := missing{status: Impossible}
	reasons := h.Lacks
	m.faults = without(r.Needs, func(f Fault) bool { _, lacking := h.Lacks[f]; return !lacking })
	if m.faults == nil {
		m.status, reasons = NotWired, h.NotWired
		m.faults = without(r.Needs, h.can)
	}
	if m.faults == nil {
		return missing{}
	}
	for _, f := range m.faults {
		why := "no " + string(f)
		if reason := reasons[f]; reason != "" {
			why += ": " + reason
		}
		m.why = append(m.why, why)
	}
	return m
}

// without returns those of the faults that had does not have.
func without(faults []Fault, had func(Fault) bool) (out []Fault) {
	for _, f := range faults {
		if !had(f) {
			out = append(out, f)
		}
	}
	return out
}
