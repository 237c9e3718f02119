// Package health has three HTTP handlers for the probes of a process that takes part in elections.
// They answer three questions that must not be mixed:
//
//   - Is the process stuck? A [Live] fails if its work goes on long after leadership ended. Restart
//     the process then: it is the liveness probe.
//   - Could the process take over? A [Ready] fails while it does not stand in line. It is a readiness
//     probe: a rollout then waits until a new process has reached the coordinator.
//   - Does the process lead? [Leader] answers 200 on the leader and 503 elsewhere. Use it to route
//     requests that only the leader can answer.
//
// In a program:
//
//	live, ready := health.NewLive(0), health.NewReady()
//	e := elect.New(b, "reports", &elect.Options{Trace: trace.Tee(live.Trace, ready.Trace)})
//	http.Handle("/live", live)
//	http.Handle("/ready", ready)
//	http.Handle("/leader", health.Leader(e))
//
// The package imports the standard
// library only.
//
// # Readiness must not be leadership
//
// A candidate that waits in line is ready: it can lead as soon as it has to. A readiness probe that
// fails on it stops a rollout: the rollout waits for the new processes to become ready, the new
// processes wait for the old leader to go, and the rollout stops the old leader only after that.
// docs/health.md says more, and how requests find the leader.
//
// # What it does not promise
//
// The answer of Leader is true when it is given, and old when it arrives. It routes requests; it
// does not fence them. Send the term's token with each write, and let the store compare it: package
// fence has the checks.
package health
