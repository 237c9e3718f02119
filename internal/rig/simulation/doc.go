// Package simulation runs elections through random schedules of faults, in virtual
// time, and looks after every step whether all that the project promises holds.
//
// A [Plan] is one schedule, as data: how many clients and elections there are, the margin
// of package elect, by how much each client's clock drifts from the coordinator's, and
// steps. Candidates (Run and Campaign of package elect) and observers begin, work
// and stop; leaders seal their elections; processes crash, are cut off in either direction
// or both, are slow, lose requests and answers; the coordinator, of package memory, pauses
// and restarts, and its log goes back; operators end sessions, remove members, delete
// elections, raise fences, ask leaders to resign, put gates into lines and take them away,
// and do what is to be done when the log went back. In plans of another kind elections
// move from one coordinator to another: processes know the old one, the new one or both,
// by package migrate, and are restarted in another mode, and operators begin migrations,
// cut them over, abort and finish them, or give up in the middle.
//
// [Run] runs a plan in a bubble of testing/synctest, then ends all faults, has operators
// finish what they left half done, waits for [Bound], stops everything, and returns a
// [Report].
//
// # What is looked at
//
// At each win, at each instant between two steps when nothing moves, and at the end:
//
//   - one leader: no two terms of an election lead at once, by their own Check; a
//     leader that was told to stop leads until its function has returned; an ended
//     term never revives.
//   - token: tokens grow in the order of winning, and are above a fence raised
//     before.
//   - place, deadline: a leader is first in line at the coordinator, on which the
//     election is, and its deadline is before the end that the coordinator knows, and is
//     kept. By how much the session's is before that is as the clocks drift.
//   - seal: nobody leads a sealed election but who sealed it.
//   - reset: who was told that the log went back gives up.
//   - migration: the seal on the old coordinator stays, and records can be read.
//   - told: whoever was removed or asked to resign, and can be reached, knows it at
//     once; its context ends with its term.
//   - lost for no reason: every loss has a fault or an operator that explains it.
//   - guarded put: no write under the guard of an earlier term lands after one of a
//     later term.
//   - ghost: the line at the coordinator is what the candidates believe.
//   - stall: when all is well, somebody leads within Bound; and a candidate that no
//     fault touches never waits longer than that without a leader.
//   - observer: observers never go back, are told nothing twice, and know the truth
//     at once where no fault is in the way.
//   - clean end: every call returns, no session and no goroutine is left.
//
// What happened is kept as a history of package history, whose checker has the last
// word on overlaps, tokens, order, vacancies and late ends.
//
// # What is excused
//
// A law that does not hold is forgiven in these cases alone.
//
//   - A place that an operator takes away (Remove, Drop, Expire, Open): from then on its
//     term is not held against others. If its process can be reached, it must know at once.
//   - A process that crashed, was closed or restarted: it leads no more, whatever it believes.
//   - A candidate loses its term or place for a reason: an operator, or a fault of its own
//     or of its coordinator, which lasts or has ended less than a session time ago.
//   - The coordinator stands still: sessions' ends, which stand still too, are not compared.
//   - Drift: a session's deadline may be later than its end at the coordinator by the
//     drift, and the margin covers that. The term's own deadline may not.
//   - The log goes back, and a process cannot be reached at that moment: the log may have
//     grown as far again as it had seen when it comes back, and so it need not notice. Its
//     terms are not held against others, nor what it wins with a place from before, nor
//     what its observers see.
//   - The log went back, and no operator has done yet what is to be done: nobody need lead;
//     processes from before may lose their places and give up. Tokens, positions and
//     guarded writes from before are compared only with each other, and tokens also with
//     those of who joined after an operator raised the fence.
//   - A gate at the head of the line, or a seal: nobody need lead, and candidates that are
//     told of the seal give up. The place of who sealed outlives its session, so that its
//     deadline is not compared.
//   - While an election moves, who cannot lead does not count when somebody has to: a
//     process of the old coordinator behind the seal, one of the new one before it, one of
//     both before the migration has begun. A process of the new coordinator that stands
//     there too early keeps those of both from leading; in that time they take places and
//     give them back, may keep others from leading, and are not observed. Those that are told so give up, and one of both that gives its place
//     back joins again. Vacancies are looked at in the end alone.
//   - An observer is compared with the truth only where no fault is in the way; one of both
//     coordinators, which notices a move at its slow re-check, in the end alone. The marks of
//     package migrate may stay until their sessions have ended.
//
// And this is never tried, as package migrate excludes it: a process of the new coordinator
// alone that begins before the migration, operators who take members away while an election
// moves, and the way back.
//
// Nor are messages so slow that a session's deadline is never further ahead than a margin
// above the default: a candidate with such a margin stands first for about a session time
// without leading, gives its place back, and so do all others in turn.
//
// # Running it
//
//	go test ./internal/rig/simulation
//
// draws 20,000 schedules of nine steps on average, the same ones each time: a quarter with
// one election, a quarter with up to three, a quarter with migrations, and a quarter of all
// these for TestReplay. With -race there are 2,000. As many more as one likes, new ones each time, are run by
//
//	go test ./internal/rig/simulation -run Simulation -timeout 0 -rapid.seed=0 -rapid.checks=500000
//
// which is a million and a half: the number is for each third. A schedule takes about a
// millisecond of a processor's time, so that is half an hour; the race detector makes it
// several times as much. Schedules are drawn and shrunk by pgregory.net/rapid. A
// failure prints the shrunk plan, the seed, and a folder with the plan, the history
// and its picture.
//
//	go test ./internal/rig/simulation -run Simulation -rapid.seed=SEED
//
// draws the failing schedule first, and
//
//	go test ./internal/rig/simulation -run Plan -plan FOLDER/plan.json
//
// runs the shrunk plan twenty times.
//
// # Replay
//
// A plan that is run again brings the same leaders with the same tokens, whatever the
// machine does; TestReplay demands that of every plan that it runs. Three things make
// it so. Time is virtual. The jitter of package elect comes from the plan's seed, by
// way of the context (package backoff). And of what happens at one instant the
// scheduler decides as little as can be: steps, heals and ends have instants of their
// own and are followed by synctest.Wait, time limits lie beside the delays of messages,
// and calls are sent in turns, a few nanoseconds apart ([turns]). What may still
// differ is which of two goroutines notes the end of a term first, and with it the
// wording of the reason, and, rarely, the order of two timers of package memory that
// fire at one instant.
//
// # What it does not show
//
// Interleavings within one instant are few: what could go wrong between two lines of
// code that no message separates is for the race detector and other tests. Real
// coordinators are for package conformance.
package simulation
