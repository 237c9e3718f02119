// Package rehearsal moves an election that is in use from one coordinator to another and
// back, again and again, while faults hit candidates, servers and the operator's command,
// and proves from what they leave behind that there was one leader all the time.
//
//	go run ./internal/rig/cmd rehearsal -for 30m -from zookeeper -to etcd
//
// # What is run
//
// [Rehearse] has ten workers stand in the line of one election, and takes the steps of
// docs/migration.md as an operator does, by the command succession: begin, a restart of
// all workers with both coordinators, one after the other and in any order, cutover, a
// restart with the new one alone, finish; and then back. Every other migration is made
// in good weather, where each step must be done at once, and the leader must lead on over
// the cutover in the same term. In the others the nemesis kills, pauses and cuts off
// workers, from both coordinators or from one, pauses and restarts servers for moments,
// each at least once, and, as a step is taken, goes for the leader and kills the
// operator's command in the middle, which is then run again.
//
// # What is proved
//
// Before a migration leaders resign and crash, where one coordinator alone is in use. The
// migrations are compared with what this costs ([Report.Check]):
//
//   - overlap, token, late, lost, invented, regression, unfenced: as in a chaos run
//     (package chaos), over all migrations. The guarded records are not compared: each coordinator has its own.
//   - order: on each coordinator, from one cutover to the next. Who waits on the old one
//     when it is sealed joins the new one when it finds the seal, in any order.
//   - slow: without faults nobody is without a leader for longer than the slowest
//     resignation that was measured, and a second for a busy machine.
//   - vacancy: with faults, not for longer than after a crash on the slower of both
//     coordinators: the time after which it ends the session of a process that died, and
//     two seconds, counted anew from each fault that may prolong it. A worker that is
//     cut off from one coordinator, and first on the other, keeps all others waiting
//     meanwhile: both are needed before the cutover.
//   - wronged: the store refused no write of a leader that was told later that it still led.
//
// # What is left behind
//
// The folder of the run has history.jsonl with all that was noted, timeline.svg with its
// picture, one of each migration (leg1.svg), summary.txt, what the command said
// (operator.log), and what package arena lists. There is no schedule: what comes when
// depends on how long the steps take.
package rehearsal
