// Package engine exercises rules: it opens their clients, puts in faults, waits, and keeps
// what everybody did. It knows no rule; those of packages laws, guarantees and faults know
// it, and package conformance runs them.
//
// A [Rule] is data with a check, which is called with a [Trial]: one run of the rule, on an
// election and with clients of its own. A check fails by [Trial.Fatalf], or by a verb that
// finds something else than it should.
//
// # What a check is written in
//
// Words that are known from elsewhere: Join, Ahead, Leave, Pin, Line, Get and Put of a
// [Client] are those of [backend.Session], and fail the rule where they fail. Campaign,
// and what [Client.Elect] returns, are those of package elect. Faults have the names of
// package conformance.
//
// And ten verbs:
//
//	Inject      puts a fault in, of a client or of the coordinator; its result heals it
//	Go          begins a call in the background, whose Returns waits for the result
//	Fails       makes a call that must fail soon, with one of these errors
//	Await       waits for a value from a channel
//	Eventually  waits until a condition holds
//	Always      looks for a while at a condition that must hold all the time
//	Pass        lets time pass, which is what the rule is about
//	Shows       waits until a client sees exactly this line
//	Stand       begins a campaign, which Wins, or Fails
//	Race        has candidates lead in turn, whose history Stop judges
//
// How long they wait is said in the terms of RULES.md: [Coordinator.Soon],
// [Coordinator.Crash], [Coordinator.Recovery], [Coordinator.Recheck]; [Now] is one look.
//
// # What a trial keeps
//
// Each call of a client and each fault is noted in a timeline, in one order. Candidates note
// in a history who led when (internal/history), which a [Race] judges by the rules of that
// package. Both are part of the [Outcome].
package engine
