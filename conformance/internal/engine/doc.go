// Package engine exercises rules: it opens clients, injects faults, waits, and keeps what
// everybody did. It knows no rule. The rules are in packages laws, guarantees and faults,
// which import it; package conformance runs them.
//
// A [Rule] is data with a check. The engine calls the check with a [Trial]: one run of the
// rule, which has an election and clients of its own. A rule fails by [Trial.Fatalf], or in
// a verb.
//
// # How to read a rule
//
// Most words of a rule are known from elsewhere. Join, Ahead, Gone, Leave, Pin, Line, Get,
// Put and List of a [Client] are the methods of [backend.Session], and must succeed.
// Campaign, and what [Client.Elect] returns, are those of package elect. Faults have the
// names of package conformance. An operator can Remove a member, Drop an election, Shift
// the clock and Rewind the coordinator.
//
// The others are ten verbs:
//
//	Inject      injects a fault into a client, the coordinator or one of its servers;
//	            the func that it returns heals the fault
//	Fails       makes a call that must fail soon, with one of these errors
//	Go          begins a call in the background; Returns waits for its result
//	Await       waits for a value from a channel
//	Eventually  waits until a condition holds
//	Always      fails when a condition does not hold at any time in a while
//	Pass        lets time pass, which is what the rule is about
//	Shows       waits until a client sees exactly this line
//	Stand       begins a campaign, and returns its [Candidate]: it Waits, Wins or GivesUp
//	Race        has candidates lead in turn until Stop, which judges their history
//
// A few short forms are made of them: First and Behind are Ahead with a check, Leads is
// Stand and Wins, Settles is Pass and Shows, Expires and Loses are Inject with a call.
//
// How long a verb waits is said in the words of RULES.md: [Coordinator.Soon],
// [Coordinator.Crash], [Coordinator.Recovery] and [Trial.Recheck]. [Now] is one look.
//
// # What a trial keeps
//
// A timeline has each call of a client and each fault, in one order. A history (package
// internal/history) has who led when; [Trial.Judge] checks it by the rules of that package.
// Both are part of the [Outcome].
package engine
