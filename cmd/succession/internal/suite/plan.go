package suite

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/conformance"
)

// selectRules returns the rules whose ID or group one of the patterns matches, as
// path.Match does; all for none.
func selectRules(patterns []string) ([]conformance.Rule, error) {
	all := conformance.Rules()
	if len(patterns) == 0 {
		return all, nil
	}
	chosen := make([]bool, len(all))
	for _, pattern := range patterns {
		found := false
		for i, r := range all {
			id, err := path.Match(pattern, r.ID)
			if err != nil {
				return nil, fmt.Errorf("--rule %q: %w", pattern, err)
			}
			group, _ := path.Match(pattern, r.Group())
			if id || group {
				found, chosen[i] = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("--rule %q matches no rule; there are groups such as L1, G8 and Records, and \"succession conformance --list\" prints all rules", pattern)
		}
	}
	var rules []conformance.Rule
	for i, r := range all {
		if chosen[i] {
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// completeRule completes, for a shell, the groups and IDs of rules.
func completeRule(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var words []string
	for _, r := range conformance.Rules() {
		if group := r.Group() + "\tall rules of this group"; !slices.Contains(words, group) {
			words = append(words, group)
		}
		words = append(words, r.ID+"\t"+r.Title)
	}
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, typed) })
	return words, cobra.ShellCompDirectiveNoFileComp
}

// exercised returns those of the rules that the harness can exercise, and why it cannot
// exercise the others.
func exercised(h *conformance.Harness, rules []conformance.Rule) (able []conformance.Rule, why []string) {
	for _, r := range rules {
		if status, reason := h.Missing(r); status == "" {
			able = append(able, r)
		} else {
			why = append(why, reason)
		}
	}
	return able, why
}

// sessionTimes is how many session times a rule takes, measured in the virtual time of
// package memory. A rule that is not here hardly waits.
var sessionTimes = map[string]float64{
	"Fault.cut": 1.9, "Fault.mute": 1.9, "Fault.deaf": 1.9, "Fault.late": 2.4, "Fault.severed": 1.9,
	"Fault.hidden": 1.9, "Fault.killed-candidate": 1.4, "Fault.killed-process": 1.4, "Fault.stopped": 2.1,
	"Fault.suspended": 0.6, "Fault.leader-removed": 0.5, "Fault.predecessor-removed": 0.7,
	"Fault.dropped": 0.5, "Run.sealed": 1.2, "Run.lost": 0.5, "Run.waits": 0.5, "G10.asked": 0.5,
	"G9.cut-context": 0.6, "G9.cut-close": 1.3, "G8.cut": 2.2, "G8.waiter-removed": 1.2, "G7.margin": 0.9,
	"G7.closed": 0.3, "G7.asked": 0.3, "G7.cut": 2.7, "G7.removed": 0.3, "G7.dropped": 0.3, "G7.expired": 0.3,
	"G5.rest": 3.3, "G5.cost": 0.2, "G6.cut": 1.8, "G5.one": 0.4, "G4.middle": 0.5, "G3.late": 1.8,
	"G4.crash": 1.6, "G1.late": 2.0, "G1.cut": 4.3, "Records.watch-cancel": 0.3, "Records.watch": 2.0,
	"Pin.gate": 1.5, "L6.old-answer": 5.3, "L6.late": 2.0, "L6.cut": 3.9, "L6.kept": 3.0, "L6.advances": 2.0,
	"L6.bound": 2.0, "L5.queue": 1.8, "L3.idle": 2.3, "L3.alone": 0.5, "L3.dropped": 0.5, "L3.cut": 1.6,
	"L3.removed": 1.0, "L3.kill": 1.6, "L3.expire": 0.5, "L3.close": 0.5, "L3.leave": 0.5,
	"L1.cancelled-cut": 3.9, "L9.deadline": 2.0, "L9.cut": 1.5, "L9.lost-answer": 1.1,
	"L3.line": 0.2, "L3.line-crash": 1.1, "L10.append": 1.3, "L10.remove": 1.3, "L10.ended": 1.3, "L10.lost-answer": 1.3,
	"Queue.cut": 1.1, "Queue.crash": 2.4, "Queue.churn": 0.3, "Queue.lost-answer": 2.6, "Barrier.lost-answer": 1.5,
	"Barrier.cut": 1.1, "Group.cut": 1.2, "Group.woken": 0.5, "Group.assign": 1.2, "Group.crash": 1.1,
	"Group.lost-answer": 1.3, "Task.workers-lost-answer": 1.3, "Task.woken": 0.2,
	"Task.standby": 1.5, "Task.replaced": 0.3, "Task.cut": 1.2, "Task.cold": 1.5, "Task.workers": 3.0, "Task.result": 0.3,
}

// besides is what a rule takes in addition to its session times.
const besides = 300 * time.Millisecond

// estimate returns about how long the rules take, with so many of them at once. Some
// rules wait for a deadline, which comes after ttl, and others for the coordinator, which
// takes slack longer. The longest rule may be among the last to begin.
func estimate(rules []conformance.Rule, ttl, slack time.Duration, parallel int) time.Duration {
	var sum, longest time.Duration
	for _, r := range rules {
		d := besides + time.Duration(sessionTimes[r.ID]*float64(ttl+slack/2))
		sum, longest = sum+d, max(longest, d)
	}
	n := time.Duration(min(parallel, len(rules)))
	return sum/n + longest*(n-1)/(2*n)
}
