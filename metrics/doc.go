// Package metrics counts what the elections of a process do: who leads, how terms end, and how much
// of a session's time is left when the coordinator confirms it.
//
// A [Recorder] gets the steps of campaigns from [elect.Options] Trace, and serves its counts in
// Prometheus' format:
//
//	m := metrics.New(nil)
//	e := elect.New(b, "reports", &elect.Options{Trace: m.Trace})
//	http.Handle("/metrics", m)
//
// Use [trace.Tee] if Trace has other work to do, too. The package imports the standard library
// only. Two separate modules give the same series to a library that a program already has:
// metrics/prometheus is a collector for a registry of client_golang, and metrics/otel registers
// instruments with a meter of OpenTelemetry.
//
// # Series
//
// No series has an id: Prometheus adds the target to what it scrapes, which tells candidates apart.
// The following have the label election. There are at most twelve of them for an election that was
// never paused or moved:
//
//	succession_leader                         1 while this process leads, else 0
//	succession_in_line                        1 while this process stands in line or leads, 0 while it tries to or has failed
//	succession_term_token                     the token of the newest term that this process has had
//	succession_terms_total{end}               terms that have ended, by how
//	succession_paused                         1 while this process waits behind the gate of a pause
//	succession_migration_phase{phase}         1 for the phase that the migration is in; see [Recorder.MigrationPhase]
//	succession_recipe{recipe}                 1 if the name is that of a lock, a queue or another recipe, and not of an election
//
// The following are for the whole process, because its elections share sessions:
//
//	succession_campaign_seconds               histogram: from joining the line to leading
//	succession_retries_total{op}              failures that may pass, by the operation that failed
//	succession_overdue_seconds                how long work has gone on after the end of its term
//	succession_session_seconds                the session time
//	succession_session_slack_ratio            histogram: how far ahead the deadline was when a confirmation moved it, as a part of the session time
//	succession_heartbeat_seconds              histogram: how long the coordinator took to confirm the session
//	succession_build_info{format,version}     1; the version of this library and of the format of headers
//
// docs/metrics.md has the meaning of each, a dashboard, and alerts.
//
// Over all processes, sum by (election) (succession_leader) is 1. It differs for a moment at each
// handover, because Prometheus does not scrape all processes at once. With recipes it may always be
// another number: 0 of a lock that nobody needs, or that of the holders of a semaphore.
//
// # What it does not promise
//
// A metric shows the past. Do not use it to ask whether this process leads: [elect.Term.Check] says
// that. And a Recorder knows only its own process: only the sum over all processes shows that
// nobody leads, or that two do.
package metrics
