// Package simulation runs elections through random schedules of faults, in virtual
// time, and looks after every step whether all that the project promises holds.
//
// A [Plan] is one schedule, as data: how many clients and elections there are, and
// steps. Candidates (Run and Campaign of package elect) and observers begin, work
// and stop; processes crash, are cut off in either direction or both, are slow, lose
// requests and answers; the coordinator, of package memory, pauses and restarts;
// operators end sessions, remove members, delete elections, raise fences and ask
// leaders to resign. [Run] runs a plan in a bubble of testing/synctest, then ends
// all faults, waits for [Bound], stops everything, and returns a [Report].
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
//   - place, deadline: a leader is first in line at the coordinator, and its
//     deadline is before the end that the coordinator knows, and is kept.
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
// # Running it
//
//	go test -race ./internal/simulation
//
// runs 20,000 schedules of nine steps on average, the same ones each time, half of
// them with one election and half with up to three. As many more as one likes, new
// ones each time, are run by
//
//	go test ./internal/simulation -run Simulation -timeout 0 -rapid.seed=0 -rapid.checks=500000
//
// which is a million: the number is for each half. A schedule takes less than a
// millisecond of a processor's time, so that is minutes; the race detector makes it
// tens of times as much. Schedules are drawn and shrunk by pgregory.net/rapid. A
// failure prints the shrunk plan, the seed, and a folder with the plan, the history
// and its picture.
//
//	go test ./internal/simulation -run Simulation -rapid.seed=SEED
//
// draws the failing schedule first, and
//
//	go test ./internal/simulation -run Plan -plan FOLDER/plan.json
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
// and calls are sent in turns, a few nanoseconds apart ([actor]). What may still
// differ is which of two goroutines notes the end of a term first, and with it the
// wording of the reason, and, rarely, the order of two timers of package memory that
// fire at one instant.
//
// # What it does not show
//
// Interleavings within one instant are few: what could go wrong between two lines of
// code that no message separates is for the race detector and other tests. Real
// coordinators are for package conformance. Migration, sealed elections and a
// coordinator whose log went back are not tried.
package simulation
