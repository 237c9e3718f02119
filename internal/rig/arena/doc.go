// Package arena holds what a chaos run and the rehearsal of a migration have in common:
// candidates in processes of their own, real coordinators, and faults that strike candidates.
//
// A [Candidate] is a name under which workers (package worker) run, one after the other. Each
// reaches the servers of a [Coordinator] through proxies that no other candidate uses. An
// [Arena] holds the candidates of a run, hears what they note ([Live]), writes down the faults
// that it does to them ([Arena.Strike]), and tells people what happens. Package evidence
// judges what the run leaves behind.
//
// A coordinator may be secured ([StartSecured]): fronts before its servers speak TLS, and it asks for a secret. Both are
// replaced while candidates run.
//
// All files of a run are in one folder. The names of a worker's files begin with its candidate
// and the number of the worker, such as c1.2 for the second worker of candidate c1:
//
//	c1.2.history.jsonl     what it noted
//	c1.2.acts              its last acts as a leader
//	c1.2.ops.jsonl         its writes
//	c1.2.log               its log
//	nemesis.history.jsonl  the faults
//	zookeeper1.log         a server's log; kept if a guarantee was broken or the run failed
//
// The folder secrets holds the authorities there have been, and what candidates have of the newest. The folder store
// holds the store (package store).
package arena
