// Package chaos runs candidates as processes of their own against a real coordinator of
// three servers, does to both what breaks in production, and proves from what they wrote
// down that the guarantees held.
//
//	go run ./internal/rig/cmd chaos -on zookeeper -for 30m
//
// # What is run
//
// Five workers (package worker) stand in the lines of two elections. Each reaches the
// coordinator through proxies of its own. Whoever leads writes, several times a second:
// to a store that fences (package store), just after a check, and to two records of the
// coordinator under the guard of its member. Workers and faults note what they do in
// files, against one clock.
//
// Faults come by a schedule that is drawn from a seed before the run and printed; the
// same seed is the same schedule on the same coordinator. Each kind comes once, and then
// they come by their weights until the time is over, in bursts. Whom a fault hits may
// depend on who leads then, and half of them go for the leader. They last less than a
// session, about as long, or longer:
//
//   - candidates are paused, killed and started anew, cut off in either direction or
//     both, refused, reset, slowed down; they resign, and are replaced in good order;
//   - servers are paused, killed and started anew, one or a majority, and isolated from
//     each other, their leader as well as others;
//   - operators remove a leader's member, or end its session (not on ZooKeeper, where that
//     takes the session's password).
//
// When the schedule is through, every candidate must lead every election once more, end
// in good order, and leave nothing: no member in any line, no process.
//
// # What is proved
//
// Package evidence judges the files, and nothing but the files:
//
//   - overlap, token, order, late: see package history, whose rules these are. Nothing is
//     forgiven, not a millisecond: a term counts from just before its leader asked and was
//     told for the first time that it led, until just before the last time, however late
//     a process that was paused or killed has noted its end, or not at all (package worker).
//   - vacancy: an election has a leader at the latest a bound after the last fault that
//     may prolong its vacancy, where a candidate stands in line that no fault touches. The
//     bound is the time after which the coordinator ends the session of a process that
//     died, and five seconds for everything else. Which faults may: onset.go of package evidence.
//   - told: a leader that an operator deposed ends its term within seconds of the
//     operator's answer, where no fault is in the way of its being told.
//   - lost: what was acknowledged is there in the end, in the store and in the records;
//     the counter's values name the one that they replaced, so that none can hide.
//   - invented: nothing is there that nobody wrote, or that was refused.
//   - regression: the store accepted no token smaller than one before.
//   - unfenced: no check succeeded, and no guarded write was let in, that was begun after
//     the leader of a later term had been told that it led.
//   - linearizable: the guarded writes fit into one order that explains all answers, and
//     in which tokens do not fall (github.com/anishathalye/porcupine). A write without an
//     answer may have happened at any later time, or never.
//
// # What is not
//
// A late write that the store refuses is no violation but what fencing is for: its
// leader was paused between its check and the write. A leader whose member an operator
// took away is not held to anything from then on where it may be cut off. In such a run
// clocks do not differ: all processes are on one machine. Disks lose nothing, and servers
// come back with their data. Reads of the guarded records are not part of the proof: a
// coordinator may answer them from the past, and a compare and set that was based on such
// an answer fails.
//
// The same seed does not bring the same run: when which process gets the processor is
// not in its hands.
//
// # What is left behind
//
// The folder of the run has schedule.txt, history.jsonl with all that was noted,
// timeline.svg with its picture, summary.txt, and what package arena lists.
package chaos
