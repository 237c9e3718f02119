// Package metrics counts what the elections of a process do: who leads, how terms end, and how much
// of a session's time is left when the coordinator confirms it.
//
// A [Recorder] hears of the steps of a campaign by [elect.Options] Trace, and serves what it has
// counted as Prometheus reads it:
//
//	m := metrics.New(nil)
//	e := elect.New(b, "reports", &elect.Options{Trace: m.Trace})
//	http.Handle("/metrics", m)
//
// Use [trace.Tee] where Trace has something else to do, too. The package imports the standard
// library only. Two modules of their own give the same series to what a program has already:
// metrics/prometheus is a collector for a registry of client_golang, and metrics/otel registers
// instruments with a meter of OpenTelemetry.
//
// # Series
//
// None has an id: candidates are told apart by the target that Prometheus adds to what it scrapes. These have the label
// election, and are at most twelve for each election while it is neither paused nor moved:
//
//	succession_leader                         1 while this process leads, else 0
//	succession_in_line                        1 while this process stands in line or leads, 0 while it tries to
//	succession_term_token                     the token of the newest term that this process has had
//	succession_terms_total{end}               terms that have ended, by how
//	succession_paused                         1 while this process waits behind the gate of a pause
//	succession_migration_phase{phase}         1 for the phase that the migration is in; see [Recorder.MigrationPhase]
//
// These are of the whole process, as its elections share sessions:
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
// Over all processes, sum by (election) (succession_leader) is 1. It is something else for a moment
// at each handover, as Prometheus does not scrape all processes at once; and where several are to
// be first together, as with the slots of a semaphore, or where all are, as in a group.
//
// # What it does not promise
//
// A metric tells what was. It is no way to ask whether this process leads: for that there is
// [elect.Term.Check]. And a Recorder knows of its own process alone: that nobody leads, or that two
// do, only the sum over all processes tells.
package metrics
