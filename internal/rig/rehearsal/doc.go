// Package rehearsal moves an election that is in use from one coordinator to another and
// back, again and again, while faults hit candidates, servers and the operator's command.
// It proves from what all of these leave behind that there was never more than one leader, and
// that leadership was never vacant for longer than allowed.
//
//	go run -C cmd/succession ./internal/rig rehearsal -for 30m -from zookeeper -to etcd
//
// # What is run
//
// [Rehearse] has ten workers stand in the line of one election, and takes the steps of
// docs/migration.md as an operator does, by the command succession:
//
//   - begin;
//   - restart all workers with both coordinators, one after the other and in any order;
//   - cutover;
//   - restart all workers with the new coordinator alone;
//   - finish.
//
// Then it moves the election back. Every other migration has no faults: each step must then
// be done at once, and the leader must lead across the cutover in the same term. In the other
// migrations a nemesis kills and pauses workers, cuts them off from one coordinator or from
// both, and pauses and restarts servers for moments; each of these comes at least once. While
// a step is taken, the nemesis aims at the leader, and kills the operator's command in the
// middle of it. The command is then run again.
//
// # What is proved
//
// Before migrations, while only one coordinator is in use, leaders resign and crash, to
// measure what that costs. [Report.Check] compares the migrations with it:
//
//   - overlap, token, late, lost, invented, regression, unfenced, believed: as in a chaos run
//     (package chaos), over all migrations. The guarded records are not compared, because each
//     coordinator has its own.
//   - order: on each coordinator, from one cutover to the next. Candidates that wait on the old
//     coordinator when it is sealed join the new one as they find the seal, in any order.
//   - slow: without faults, a time without a leader is at most as long as that of the slowest
//     resignation that was measured, and a second more for a busy machine.
//   - vacancy: with faults, it is at most as long as after a crash on the slower of both
//     coordinators: the time after which that ends the session of a process that died, and two
//     seconds. It is counted anew from each fault that may prolong it. Before the cutover a
//     leader needs both coordinators. So a worker that is first on one, and cut off from the
//     other, keeps all others waiting meanwhile.
//   - wronged: the store refused no write of a leader that was told later that it still led.
//
// # What is left behind
//
// The folder of the run holds history.jsonl with all notes, timeline.svg with their picture, a
// picture of each migration (leg1.svg), summary.txt, the output of the command (operator.log),
// and the files that package arena lists. There is no schedule: the times of faults depend on
// how long the steps take.
package rehearsal
