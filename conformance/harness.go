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
	"github.com/succession-dev/succession/internal/calm"
)

// A Harness connects the suite to one coordinator. Only Name, Open and TTL are required. If
// later versions add fields, their zero values will change nothing.
type Harness struct {
	// Name is the coordinator's name in reports, such as "zookeeper 3.9.4".
	Name string

	// Open returns a new client of the coordinator at each call. Each client is independent
	// of all others and has its own session. The suite closes it. Open is called from several
	// goroutines at once.
	Open func(ctx context.Context) (backend.Backend, error)

	// TTL is the session time that the clients of Open use. It should be the shortest that
	// the coordinator honours, because nearly all waits of the suite scale with it. If the
	// sessions of the backend do not end by time (it lacks [Deadlines]), TTL is a time within
	// which every client sees a change.
	TTL time.Duration

	// Slack is how much longer than TTL the coordinator may take to end the session of a silent
	// client. 0 is none.
	Slack time.Duration

	// Latency is the longest time that a healthy call, a notification or a cancellation may
	// take. It only decides when a rule fails, and does not slow down rules that pass. 0 is two
	// seconds.
	Latency time.Duration

	// Reference makes a small write to another server like those under test, which neither the
	// rules nor Faults touch, and returns when the server has answered. From it the suite learns
	// whether the machine is too busy to judge rules about time or cost: such a rule is run again,
	// whether it has passed or failed, and in the end it is not judged. The suite calls Reference
	// several times in TTL, one call at a time. Often the deletion of a key that does not exist is
	// enough, and for a cluster of n servers n of them in a row. If there are no faults of servers, Reference may write to the coordinator itself. If
	// it is nil, only timers of this process tell how busy the machine is. Only the Reference of
	// the harness that is given to [Run] or [Check] is used, and not that of Wrap.
	Reference func(ctx context.Context) error

	// Faults is what can be done to the coordinator and its clients.
	Faults Faults

	// Lacks says, for each fault that this coordinator cannot have, why not. A rule that
	// needs such a fault is reported as impossible, with that reason. A reason for a fault that
	// Faults provides makes the run fail. The suite finds out by itself which abilities
	// ([Deadlines], [Shares], [Records], [Pins], [Items], [Places]) a backend lacks.
	Lacks map[Fault]string

	// NotWired says, for faults that the coordinator could have but the harness does not
	// provide, why not. It may be left out: each fault that is neither provided nor in Lacks is
	// not wired, and each rule that needs it is reported as not wired.
	NotWired map[Fault]string

	// Complete says that the harness should leave no fault out: a fault that is neither
	// provided nor in Lacks makes the run fail.
	Complete bool

	// Waive says, by rule ID, why a rule may fail. A waiver makes the run fail if its rule
	// does not exist, was not exercised, or passes.
	Waive map[string]string

	// Unfit says, by rule ID, why a run with this harness cannot show whether the rule is kept.
	// The rule is reported as impossible, with that reason. It makes the run fail if there is no
	// such rule.
	Unfit map[string]string

	// Costs says, by rule ID, how many requests what the rule measures takes at most on this coordinator:
	// "G5.handover", "G5.rest" (in a TTL), "Lock.cost", "Queue.cost" and "Queue.put". Say what it takes, and no more: then the rule fails as soon as it takes one
	// more. A rule that is not named has a limit of its own, which is wide enough for most coordinators. It makes
	// the run fail if a rule that is named measures no such thing.
	Costs map[string]int64

	// Only restricts the run to these rules, by ID ("L3.leave"), group ("L3") or [Suite]. Nil is
	// all.
	Only []string

	// Prefix begins the names of all elections and records that the suite uses. The suite
	// never uses a name twice. Empty is "conformance".
	Prefix string

	// Report is a folder for the histories of the rules that have candidates: who led when,
	// under which fault, as lines of JSON (ID.jsonl) and as a picture (ID.svg). The suite
	// makes the folder if it is missing. If Report is empty, [Check] writes no histories. [Run]
	// then writes to the folder of [testing.T.ArtifactDir] with go test -artifacts, and
	// without that flag to a temporary folder for each rule that fails.
	Report string

	// Parallel is how many rules [Check] exercises at once. 0 is one. In [Run] the -parallel
	// flag of go test decides. Rules that disturb the whole coordinator always run alone; of those with a crowd of
	// clients, and of those that are run again, one runs at a time.
	Parallel int

	// Wrap, if not nil, is called by [Run] for each rule that is not impossible. It must call
	// rule exactly once, with a t and a harness of its choice, and return after it. Wrap can
	// give each rule a fresh coordinator, or run it in a testing/synctest bubble.
	Wrap func(t *testing.T, rule func(t *testing.T, h Harness))

	reportsFailures bool // each failure is written to a temporary folder if Report is empty

	// election, if not nil, replaces package elect. The suite's own tests use it to see
	// rules fail on a flawed election.
	election election.Maker

	abilities *engine.Abilities // shared by all rules of a run
	calm      engine.Calm       // shared by all rules of a run; tests of the suite set their own
	deadline  time.Time         // of the run; zero for none
}

// watch starts to measure how busy the machine is.
func (h *Harness) watch() (stop func()) {
	if h.calm != nil {
		return func() {}
	}
	m := calm.Watch(calm.Limit(min(h.TTL, h.coordinator().Soon())), h.Reference)
	h.calm = m
	return m.Close
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
		return slices.ContainsFunc(rules, func(r Rule) bool { return r.isOf(id) })
	}
	for name, reasons := range map[string]map[string]string{"Waive": h.Waive, "Unfit": h.Unfit} {
		for _, id := range slices.Sorted(maps.Keys(reasons)) {
			switch {
			case !slices.ContainsFunc(rules, func(r Rule) bool { return r.ID == id }):
				return fmt.Errorf("conformance: Harness.%s names %q, which is no rule", name, id)
			case reasons[id] == "":
				return fmt.Errorf("conformance: Harness.%s[%s] gives no reason", name, id)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(h.Costs)) {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return r.ID == id && r.rule.Most > 0 }) || h.Costs[id] < 1 {
			return fmt.Errorf("conformance: Harness.Costs[%s] is %d; it names a rule that counts requests, and how many it allows", id, h.Costs[id])
		}
	}
	for _, id := range h.Only {
		if !known(id) {
			return fmt.Errorf("conformance: Harness.Only names %q, which is no rule, no group and no suite", id)
		}
	}
	return nil
}

// validateFaults reports contradictions in what the harness says about faults.
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
		if !engine.IsAbility(f) && !h.lacks(f) && !h.provides(f) {
			open = append(open, string(f))
		}
	}
	if open != nil {
		return fmt.Errorf("conformance: Harness.Complete, and nothing is said of %s: provide them in Faults, or say in Lacks why the coordinator cannot have them", strings.Join(open, ", "))
	}
	return nil
}

// lacks reports whether Lacks says that the coordinator cannot have f. A coordinator that lacks
// Cluster lacks its fields, too.
func (h *Harness) lacks(f Fault) bool {
	_, lacking := h.Lacks[f]
	return lacking || (f == Isolate || f == Failover) && h.lacks(Cluster)
}

func (h *Harness) selects(r Rule) bool {
	return h.Only == nil || slices.ContainsFunc(h.Only, r.isOf)
}

// Missing returns how r would be reported because it cannot be exercised: [Impossible] or
// [NotWired], and why. The status is empty if the harness has all that r needs. The backend
// may still lack an ability, which only a run finds out.
func (h *Harness) Missing(r Rule) (s Status, why string) {
	m := h.missing(r)
	return m.status, m.reason()
}

// missing says why a rule cannot be exercised.
type missing struct {
	status Status   // Impossible or NotWired; empty if nothing is missing
	faults []Fault  // the faults that the rule needs but cannot have
	why    []string // for each of the faults; without them, the reason of Harness.Unfit
}

func (m missing) reason() string { return strings.Join(m.why, ", ") }

// missing does the work of [Harness.Missing]. If a rule lacks both faults that the coordinator
// cannot have and faults that are not wired, it is impossible.
func (h *Harness) missing(r Rule) missing {
	if why, unfit := h.Unfit[r.ID]; unfit {
		return missing{status: Impossible, why: []string{why}}
	}
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

// without returns the faults for which had is false.
func without(faults []Fault, had func(Fault) bool) (out []Fault) {
	for _, f := range faults {
		if !had(f) {
			out = append(out, f)
		}
	}
	return out
}
