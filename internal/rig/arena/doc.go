// Package arena is what a chaos run and the rehearsal of a migration have in common:
// candidates as processes, real coordinators, and what breaks candidates.
//
// A [Candidate] is one worker after the other (package worker) under one name. It reaches
// the servers of a [Coordinator] through proxies of its own. An [Arena] holds the
// candidates of a run, hears what they note ([Live]), writes down the faults that it does
// to them ([Arena.Strike]), and tells people what happens. What the run leaves behind is
// judged by package evidence.
//
// All files of a run are in one folder: of each worker, by its candidate and how many there
// were before it, what it noted (c1.2.history.jsonl), its last acts as a leader (c1.2.acts),
// its writes (c1.2.ops.jsonl) and its log (c1.2.log); the faults
// (nemesis.history.jsonl); the store; and, where a guarantee was broken, the servers' logs
// (zookeeper1.log).
package arena
