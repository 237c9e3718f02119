// Package run has the subcommands run, lock, queue take and group join: they run a command only
// while this process leads, holds a lock, has taken an item, or is present in a group. What
// differs between them is the right that their command needs (run.go).
//
// A runner is one goroutine that owns everything: it campaigns, starts the command,
// forwards signals, and reacts to the end of the term. Messages go through a queue
// (report.go), so that a terminal that blocks never delays the stop of a command that
// must not run any more. The command runs under a guard (child), which kills it when this
// process dies in whatever way.
//
// The order is always: elected, started, ended with everything that it
// started, resigned. When leadership ends first, the command gets TERM a grace
// time before the session's deadline and KILL before the deadline itself
// (grace.go), so it has ended before the coordinator can hand leadership on.
//
// # What it does not promise
//
// If this process is killed with KILL, the guard kills the command within
// milliseconds. A remote coordinator hands leadership on only when the session's
// time is up, and the kernel, as the coordinator of local:, when the guard has gone,
// which holds the place too. If this process is stopped (STOP) or starved of the
// processor, the guard kills the command before the deadline, unless it is stopped or
// starved itself. Against that, let what the command writes to refuse a smaller
// SUCCESSION_TOKEN than it has seen.
package run
