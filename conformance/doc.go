// Package conformance tests whether a coordinator and the backend that talks to it keep
// the laws of package backend and the guarantees of package elect.
//
// It is for those who write a backend, and for those who run a coordinator with
// settings of their own. Ten lines exercise every rule that needs no fault. Each rule is a
// subtest (go test -run 'MyStore/L3'):
//
//	func TestMyStore(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			Name: "mystore 1.2",
//			TTL:  2 * time.Second, // the session time that Open asks for
//			Open: func(ctx context.Context) (backend.Backend, error) {
//				return mystore.Dial(ctx, addr, 2*time.Second)
//			},
//		})
//	}
//
// The rules that need a fault are then reported as not wired, and never as passed.
// [Check] does the same without package testing, for a command. Its example contains a
// complete backend.
//
// # Wiring faults
//
// [Faults] says what can be done to a coordinator and its clients. One call provides the
// faults of the network, by package
// [github.com/succession-dev/succession/conformance/proxy]:
//
//	h.Faults.Network(func(b backend.Backend) []*proxy.Proxy { return b.(*client).proxies })
//	h.Faults.Restart = func(ctx context.Context) error { return server.Restart(ctx) }
//	h.Lacks = map[conformance.Fault]string{conformance.Clock: "its sessions end by timers"}
//	h.Complete = true
//
// Lacks names the faults that this coordinator cannot have, and says why. With Complete, the
// run fails if a fault is neither provided nor in Lacks.
//
// # Abilities
//
// A backend may lack pins, records, items, shared members, or sessions that end by time (package
// backend). The suite finds that out by itself, before the first rule.
//
// # Rules
//
// A [Rule] is data: an ID, a title, the rule in words, the faults and abilities that it
// needs, and a check. IDs are stable, and grouped by the laws L1 to L10 of package backend and
// the guarantees G1 to G10 of the project. Beside them, Pin and Records are
// parts of the contract, Run is the contract of elect.Election.Run, Choice is readiness, preference and
// pause, Lock, Queue, Barrier, Group and Task are the packages with these names, Value is package record,
// and Fault is all of it under each fault. RULES.md lists all rules and is generated from them.
//
// # Busy machines
//
// A rule about what must happen soon, or about what something costs, says nothing on a machine that
// is too busy. So during each trial of a rule the suite measures how late its own timers fire, and
// how long [Harness] Reference takes, a plain request to a server beside the coordinator. A trial
// that was disturbed is run again, up to twice, whether the rule has passed or failed. If no trial
// was calm, the rule is reported as not judged, with the figures. No rule is run again because it
// has failed. If something happens that must never happen, such as two leaders, the rule fails
// however busy the machine is. A run in which more than one rule in twenty was not judged fails, if it was more than one.
//
// # What a result is worth
//
// A rule that cannot be exercised is never reported as passed. It is impossible if the coordinator
// cannot have what the rule needs, or if the harness says that the rule is unfit. It is not wired
// if the harness does not provide what the rule needs. A rule that is known to fail can be waived
// by its ID, with a reason; a waiver that is not needed fails the run. Impossible, not wired,
// waived and not judged rules are counted apart. Without -v, go test in the package's folder ends
// with the counts.
//
// A failure shows what went wrong, the rule, and what all clients of the rule did, in one
// order. Each rule has its own election, its own clients, and a watchdog.
//
// The suite itself is tested on backends and elections that each break one law on purpose.
//
// # Where things are
//
// This package holds the harness, the run and its report. The rules are two suites on one engine:
// [Driver], which is what a driver must keep and what elections make of it, and [Recipes], which is
// what the recipes promise. [Harness] Only can name one of them. The rules are in the packages
// internal/laws, internal/guarantees, internal/faults and internal/recipes, in files named after
// their subjects. They import internal/engine, which knows no rule; its documentation says how to
// read one. Package internal/broken holds the flawed backends and elections.
//
// # Faults
//
// The rules of the group Fault are one table with one scenario. Five candidates lead in
// turn, the fault strikes, each leads in turn again, all resign, and nothing is left, neither
// in line nor in this process. Their notes are then judged as a whole: whether two led at the same
// time, whether tokens and order were right, whether a term outlasted its deadline, and whether the
// election was without a leader for longer than the harness explains. [Stand] is a candidate in a
// process of its own, which the suite can stop and kill.
//
// # Histories
//
// A history says which candidate led when, and which fault there was. It is written as lines of
// JSON, and as a picture with a row for each candidate. The [Result] of a failure contains its
// history. [Harness] Report names a folder for the histories of all rules that have candidates,
// passed or failed. Without it, [Run] writes them to the folder of go test -artifacts. Without that
// flag, Run writes only those of failures, each to a temporary folder that the message names.
//
// # What it does not show
//
// A suite can show that a rule was broken, but not that it never will be. It waits for
// events; where nothing must happen, the rule says for how long the suite looks. It assumes
// that a harness does what it says, and that all processes of its machine read the same
// clock.
package conformance

//go:generate go test -run TestRulesFile -update .
