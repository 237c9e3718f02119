// Faults puts the same faults on leaders elected by this project and by others, on real
// coordinators, and prints one table of what came of it.
//
//	go run -C bench ./faults            # everything, three times each
//	go run -C bench ./faults -list      # the faults and the libraries
//	go run -C bench ./faults -only 'cut|late' -library etcd -n 5 -json out.json
//
// In each run a coordinator of its own is started, and two candidates of one library, each in
// a process of its own and behind a proxy of its own: a, who leads, and b, who waits. A fault is
// put on a or on the coordinator, and what the two say is noted, against the one clock of the
// machine, until exactly one leads again or nothing has happened for -patience.
//
// # What is measured
//
// A candidate believes that it leads from when its library says that it was elected until its
// library's documented way of telling of a loss fires; package candidate, and the peers of
// coordtest, say which that is. While its process is paused it believes nothing.
//
//   - two leaders: the time in which both believed. Given is the worst run.
//   - no leader: the time from the fault on in which neither did. Worst and median.
//   - told: whether the old leader was told, and how long before or after the next one was
//     elected, or, for a process that was paused, after it was resumed.
//
// A time that was still going on when patience ended is shown as "> 60 s".
//
// # What is not
//
// One machine, whose network is a proxy that holds back bytes: no lost packets below TCP, no
// clocks that differ. Two candidates, one election, no load. Each library has its default
// settings but for the session's time, which is the same for all; it may fare better with
// others. Servers have their default times too, but that Consul's session_ttl_min, 10 s, is
// lowered to the session's time. ZooKeeper grants no session below 4 s with these.
// client-go's leaderelection is left out: it needs the API server of a Kubernetes.
package main
