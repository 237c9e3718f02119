// Package simulation runs elections through random schedules of faults, in virtual
// time, and checks after every step whether everything that the project promises holds.
//
// A [Plan] is one schedule, as data: the numbers of clients and elections, the margin
// of package elect, the drift of each client's clock from the coordinator's, and steps. In
// the steps
//
//   - candidates (Run and Campaign of package elect) and observers begin, work and stop;
//     leaders seal their elections;
//   - processes crash, are cut off in one direction or in both, are slow, and lose requests
//     and answers;
//   - the coordinator (package memory) pauses and restarts, and its log goes back;
//   - operators end sessions, remove members, delete elections, raise fences, ask leaders to
//     resign, put gates into lines and take them away, and repair elections after the log went
//     back.
//
// In plans of another kind candidates choose which of them leads: they have priorities and sites,
// and are ready only at times. Operators wish for one of them, and pause and resume elections.
//
// In other plans elections move from one coordinator to another. Processes know the old
// coordinator, the new one, or both (package migrate), and are restarted with other coordinators.
// Operators begin migrations, cut them over, abort and finish them, or give up in the middle.
//
// [Run] runs a plan in a bubble of testing/synctest. Then it ends all faults, lets operators finish
// what they left half done, waits for [Bound], stops everything, and returns a [Report].
//
// # What is checked
//
// At each win, at each instant between two steps when nothing moves, and at the end:
//
//   - one leader: no two terms of an election lead at once, by their own Check. A
//     leader that was told to stop leads until its function has returned. An ended
//     term never revives.
//   - token: tokens grow in the order of winning, and are above a fence that was raised
//     before.
//   - place: a leader is first in line, at the coordinator on which the election is.
//   - deadline: nobody leads after the deadline of the term. The deadline of the leader's
//     session is not later than the end that the coordinator knows, except for the drift.
//   - seal: only the candidate that sealed an election leads it.
//   - reset: a candidate that was told that the log went back gives up.
//   - migration: the seal on the old coordinator stays, and records can be read.
//   - told: a leader that was removed or asked to resign, and can be reached, knows it at
//     once. The context of a term ends with the term.
//   - lost for no reason: a fault or an operator explains every loss.
//   - guarded put: no guarded write of an earlier term lands after one of a later term.
//   - ghost: the line at the coordinator has the members that the candidates believe, and no
//     others.
//   - stall: a candidate leads within Bound after the last fault. A candidate that no fault touches
//     never waits longer than Bound without a leader.
//   - ready: no candidate wins that has known for a while that it is not ready. If a ready
//     candidate stands in line, a leader that is not ready hands over within Bound.
//   - observer: observers never go back, see no state twice in a row, and know the truth at once if
//     no fault is in the way.
//   - clean end: every call returns, and no session and no goroutine is left.
//
// The run is kept as a history of package history, whose checker decides about overlaps, tokens,
// order, vacancies and late ends.
//
// # What is excused
//
// A check that fails is forgiven only in these cases.
//
//   - An operator takes a member away (Remove, Drop, Expire, Open): from then on its term does not
//     count as an overlap. If its process can be reached, it must know at once.
//   - A process crashed, was closed or restarted: from then on it does not lead, whatever it
//     believes.
//   - A candidate loses its term or member for a reason: an operator, or a fault of the
//     candidate or its coordinator that lasts, or ended less than a session time ago. A message that is to be lost
//     explains one failure, whenever that comes.
//   - The coordinator is paused: the ends of sessions, which stand still too, are not compared.
//   - Drift: the deadline of a session may be later than its end at the coordinator by the
//     drift, and the margin covers that. The term's own deadline may not.
//   - The log goes back while a process cannot be reached, or has no session as it is about to open another one: until the process comes back, the
//     log may have grown as far as the process had seen it, and so the process need not notice.
//     Its terms do not count, nor do terms that it wins with a member from before, nor what its
//     observers see.
//   - The log went back, and no operator has repaired that yet: nobody need lead, and processes
//     from before may lose their members and give up. Tokens, positions and guarded writes from
//     before are compared only with each other; tokens are also compared with those of candidates
//     that joined after an operator raised the fence.
//   - A gate or a seal is at the head of the line: nobody need lead, and candidates that learn of
//     the seal give up. The member that was pinned as a seal outlives its session, so its deadline
//     is not compared.
//   - A candidate is not ready: it need not lead, and its terms end for that. While such a
//     candidate at the head of the line waits for slow answers before it gives way, others may wait
//     longer than Bound. A pause is a gate.
//   - While an election moves, some candidates cannot lead, and do not count when a leader is
//     required: a process of the old coordinator behind the seal, a process of the new one before
//     there is a seal, and a process of both before the migration has begun. If a process of the
//     new coordinator stands there too early, it keeps the processes of both from leading. In that
//     time these join and leave again, may keep others from leading, and are not observed.
//     Processes that learn of that give up; a process of both that left joins again. Vacancies are
//     checked only at the end.
//   - Observers are compared with the truth only while no fault is in the way. An observer of
//     both coordinators notices a move at its slow re-check, and is compared only in the end.
//     The marks of package migrate may stay until their sessions have ended. An observer that has seen a raised
//     fence is not compared between the deletion of the election and the moment when the first in line restores it.
//
// Three things are never tried, because package migrate excludes them: a process of the new
// coordinator alone that begins before the migration, operators who take members away while an
// election moves, and the way back.
//
// With a margin above the default, messages are never so slow that the deadline of a session is
// always less than the margin ahead. Otherwise a candidate would stand first for about a
// session time without leading, and leave, and so would all others in turn.
//
// # Running it
//
//	go test ./internal/rig/simulation
//
// judges 4,000 schedules of nine steps on average, the same ones each time: a quarter with one election, a
// quarter with up to three, a quarter with migrations, and a quarter in which candidates choose. With -race
// there are 600. TestReplay draws others. This judges more, and new ones each time:
//
//	go test ./internal/rig/simulation -run Simulation -timeout 0 -rapid.seed=0 -rapid.checks=500000
//
// These are two million schedules, because the number is for each of the four kinds. A schedule
// takes about a millisecond of processor time, so that is half an hour; the race detector makes it
// several times as much. Package pgregory.net/rapid draws the schedules and shrinks them. A failure
// prints the shrunk plan, the seed, and the name of a folder with the plan, the history and its
// picture.
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
// A plan that is run again gives the same leaders with the same tokens, whatever the
// machine does. TestReplay checks that for every plan that it runs. It runs no plans in which
// candidates choose, because such a candidate asks whether it is ready, and says so, in no fixed
// order with its campaign. There are three reasons why a replay is the same:
//
//   - Time is virtual.
//   - The jitter of package elect comes from the plan's seed, through the context (package
//     backoff).
//   - The scheduler decides as little as possible of what happens at one instant. Each step,
//     heal and end has an instant of its own and is followed by synctest.Wait. Time limits
//     differ from the delays of messages. Calls are sent in turns, a few nanoseconds apart
//     ([turns]).
//
// Two things may still differ: which of two goroutines notes the end of a term first, and so
// the wording of the reason; and, rarely, the order of two timers of package memory that
// fire at one instant.
//
// # What it does not show
//
// "./test coverage" prints the functions of the product that no schedule calls, neither these
// schedules nor those of the recipes. They are of these kinds:
//
//   - functions that look, for people: names, lists, counts, status, and following a group or a
//     record;
//   - tries that do not wait (TryLock and the like), and values of a record without a condition: they are short,
//     and the tests of their packages and package conformance run them under faults;
//   - the history of an election, which decides nothing;
//   - faults and counters of package memory that other tests use;
//   - in a migration: the trial before it, the printed plan, and steps that are needed only if an
//     operator's command was killed at one exact point, or if a foreign client stands in the line.
//     The model in package migrate covers all of these.
//
// The simulation tries few interleavings within one instant. The race detector and other tests look
// for faults between two lines of code with no message between them. Package conformance tests real
// coordinators.
package simulation
