// Package engine exercises the rules of the conformance suite: it opens clients, injects faults,
// waits, and records what all of them did. It knows no rule. The rules are in the packages laws,
// guarantees, faults and recipes, which import it; package conformance runs them.
//
// A [Rule] is data with a check. The engine calls the check with a [Trial]: one run of the
// rule, with its own election and its own clients. A rule fails if its check calls
// [Trial.Fatalf], or if a verb that it uses does.
//
// # How to read a rule
//
// Most words of a rule are known from elsewhere. Join, Ahead, Gone, Leave, Pin, Line, Get,
// Put and List of a [Client] call the methods of [backend.Session] with these names, and the
// calls must succeed. Campaign, and what [Client.Elect] returns, are those of package elect.
// Faults have the names of package conformance. A [Trial] acts as an operator: it can Remove a
// member, Drop an election, Shift the clock and Rewind the coordinator.
//
// The other words are ten verbs:
//
//	Inject      injects a fault into a client, the coordinator or one of its servers;
//	            the func that it returns heals the fault
//	Fails       makes a call that must fail soon, with one of these errors
//	Go          begins a call in the background; Returns waits for its result
//	Await       waits for a value from a channel
//	Eventually  waits until a condition holds
//	Always      checks, for a time, that a condition holds at each look
//	Pass        lets time pass, because the rule is about that time
//	Shows       waits until a client sees exactly this line
//	Stand       begins a campaign, and returns its [Candidate], which Waits, Wins or GivesUp
//	Race        has candidates lead in turn until Stop
//
// A few short forms combine them: First and Behind are Ahead with a check, Leads is
// Stand and Wins, Settles is Pass and Shows, Expires and Loses are Inject with a call.
//
// Waiting times have the names that RULES.md explains: [Coordinator.Soon],
// [Coordinator.Crash], [Coordinator.Recovery] and [Trial.Recheck]. [Now] is one look without
// waiting.
//
// # What a trial keeps
//
// A timeline holds each call of a client and each fault, in one order. A history (package
// internal/history) says which candidate led when; [Trial.Judged] checks it by the rules of that
// package. Both are part of the [Outcome].
package engine
