// Package conformance finds out whether a coordinator, and the backend that talks
// to it, keep what package backend demands and package elect promises.
//
// It is for those who write a backend, and for those who run a coordinator with
// settings of their own. Ten lines exercise every rule that needs no fault, each as a
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
// [Check] does the same without package testing, for a command; its example has a whole
// backend.
//
// # Wiring faults
//
// [Faults] says what can be done to a coordinator and its clients. What the network does
// comes from package [github.com/succession-dev/succession/conformance/proxy], in one
// call:
//
//	h.Faults.Network(func(b backend.Backend) []*proxy.Proxy { return b.(*client).proxies })
//	h.Faults.Restart = func(ctx context.Context) error { return server.Restart(ctx) }
//	h.Lacks = map[conformance.Fault]string{conformance.Clock: "its sessions end by timers"}
//	h.Complete = true
//
// [Harness] Lacks says of a fault that the coordinator cannot have it, and Complete that
// nothing is left out, which the run then insists on.
//
// # Abilities
//
// A backend may lack pins, records, or sessions with a time (package backend). The suite
// finds that out by itself, before the first rule.
//
// # Rules
//
// A [Rule] is data: an ID, a title, the rule in words, the faults and abilities that it
// needs, and a check. IDs are stable and grouped by the laws L1 to L8 of package backend and
// the guarantees G1 to G10 of the project; Pin and Records are parts of the
// contract beside the laws, Run is the contract of elect.Election.Run, and Fault is
// all of it under each fault. RULES.md has them all and is generated from the data.
//
// # What a result is worth
//
// A rule that cannot be exercised is never reported as passed. It is impossible where the
// coordinator cannot have what it needs, and not wired where the harness does not provide
// it yet. A rule that is known to fail is waived by name, with a reason; a waiver that is
// not needed fails the run. The three are counted apart. A failure shows what went
// wrong, the rule, and what all clients of the rule did, in one order. Each rule has
// an election and clients of its own, and a watchdog.
//
// The suite is tested itself: on backends that each break one law.
//
// This package has what a harness says, the run and its report. The rules lie in packages of
// their own, internal/laws, internal/guarantees and internal/faults, a file for each law and
// guarantee. They import internal/engine, which knows none of them and says in its
// documentation how to read a rule; internal/broken has the backends with flaws.
//
// # Faults
//
// The rules of the group Fault are one table with one scenario: five candidates lead in
// turn, something happens, each leads in turn again, all resign, and nothing is left,
// neither in line nor in this process. What they noted is judged as a whole: nobody led
// beside another, tokens and order, terms that outlast their deadline, and times
// without a leader that are longer than the harness explains. [Faults] says what can
// happen. [Stand] is a candidate in a process of its own, which can be stopped.
//
// # Histories
//
// Who led when, and which fault was there, is a history: notes in lines of JSON, with a
// picture of a row for each candidate. A result that is a failure holds it; it is
// written to [Harness] Report, for what passes as well, or in [Run] without one to the
// folder of go test -artifacts. Without either a failure says in which temporary folder
// it is.
//
// # What it does not show
//
// A suite shows that a rule was broken, never that it cannot be. It waits for
// events; where it must be shown that nothing happens, the rule says for how long it
// looks. It assumes that a harness does what it says, and that clocks of the
// machine it runs on are one clock.
package conformance

//go:generate go test -run TestRulesFile -update .
