// Faults puts the same faults on leaders elected by this project and by others, on real
// coordinators, and prints tables of what came of it.
//
//	go run -C bench ./faults -json mine.json      # everything, three times each
//	go run -C bench ./faults -json mine.json -n 30  # and on with it, until there are thirty
//	go run -C bench ./faults -list             # the faults and the libraries
//	go run -C bench ./faults -only 'cut|late' -library etcd -n 5
//
// What -json wrote is printed again by -from, and put into the text that shows it with -into:
//
//	go run -C bench ./faults -from faults.json -into README.md
//	go run -C bench ./faults -from faults.json -short
//
// What -json wrote before is gone on with: what is measured is what the file lacks. It has all runs, the seed of each, and of
// each run of the program the date, the commit of this project, the machine and how busy it was. A seed draws the moments at which faults come;
// what servers and processes do meanwhile is their own. Runs with other versions do not go into one file, but other commits do.
//
// Paths are relative to the folder bench.
//
// In each run a coordinator of its own is started, and two candidates of one library, each in
// a process of its own and behind a proxy of its own: a, who leads, and b, who waits. A fault is
// put on a or on the coordinator, and what the two say is noted, against the one clock of the
// machine, until exactly one leads again or nothing has happened for -patience.
//
// # What is measured
//
// Whether a candidate acts as leader. About every millisecond while it leads it asks its library,
// in the way that the library documents, whether it still does, and acts if the answer is yes;
// -list says what is asked. A term lasts from when the library says that the candidate was
// elected until the last act, which is dated before the asking: an act is never later than a yes
// of the library. While a process is paused it does nothing. All this is the same for all; see
// package candidate, and the peers of coordtest for the libraries of Java and Python.
//
//   - two leaders: the time in which both acted, and in how many runs both did, with the bounds within which the share of such runs lies.
//     A run in which nobody followed a leader that was paused does not count there: it stays paused.
//   - nobody leads: the time from the fault on in which neither did.
//   - the old leader stops: whether its last act was before the next one was elected (or before
//     its process, which was paused, was resumed), how much later it was, or that it acts on.
//
// A time that was still going on when observation ended is shown as "> 30 s".
//
// Some faults are outside the promise that no two lead, each for the reason that its entry in
// the table of faults gives. They are reported apart.
//
// A run that could not be measured, or in which a process ended that the fault had not killed, is
// not tried again. It is reported as not measured, and the program then fails. When a file is gone on with, its row gets another run, and the report stays.
//
// # What is not
//
// One machine, whose network is a proxy that holds back bytes: no lost packets below TCP, no
// clocks that differ. Two candidates, one election, no load. Each library has its default
// settings but for the session's time, which is the same for all, and some are measured also with what their documentation
// advises; they may fare better with others. Servers have their default times too, but that Consul's session_ttl_min, 10 s, is
// lowered to the session's time. ZooKeeper grants no session below 4 s with these.
// Kubernetes is one API server on one etcd; it is left out until it has been built, which takes
// minutes, or is named; and Redis, where there is none:
//
//	go run -C bench ./faults -library 'kubernetes|redis'
package main
