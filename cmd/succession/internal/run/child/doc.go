// Package child runs a command that must not outlive the process that started it.
//
// Between that process, the parent, and the command stands a guard: the parent's
// own executable, started once more. Parent and guard share two pipes. Over one
// the parent says what to do (signal the command's process group, end what the
// command left behind), over the other the guard reports (started, ended).
// When the first pipe ends, the guard kills everything that the command started: the
// parent closes it, or, when that dies, kill -9 included, the kernel. When the parent
// lives on and does nothing, as it was stopped, or the machine was suspended, the
// guard kills in its place: it has been told until when the command may run, once it was
// there and before it started the command, and has to be told again before that. Before it kills
// for that, it hears what it was told meanwhile, so a slow file system, from which the command is executed, ends no term.
//
//	parent ── control ──▶ guard ── fork, exec ──▶ command (a process group of its own)
//	       ◀─ reports ───       ◀── reaps ──────  and all that it starts
//
// The guard can also hold files open for as long as anything of the command runs: a
// lock on one (flock(2) belongs to the open file, not to a process) then outlives the
// parent, and nobody can take it before the command is dead.
//
// The guard waits for all that the command starts, not for the command alone: a
// [Child] is gone when nothing of it runs. On Linux the guard is a subreaper
// (prctl(2), PR_SET_CHILD_SUBREAPER), so this holds for processes that moved to a
// session or a process group of their own, too, and the command has KILL as its
// parent death signal in case the guard itself is killed; the parent, a subreaper too,
// kills the rest then. Elsewhere it holds for the command's process group.
//
// # What it does not promise
//
// If the guard alone is killed on Linux, the parent kills all its children that are no
// older than the guard: it must start no others than a [Beside] while a command runs. Elsewhere the
// command's descendants that have left its process group run on. If the guard and the
// parent are killed at the same time, only the command itself is killed, and that only on
// Linux; what they held is free a moment before. A guard that is stopped kills when it
// goes on, unless the parent has told it a later instant, or when the parent orders it to. A process in uninterruptible sleep cannot
// be killed, nor can one that has become another user's; the child is not gone until it
// has died.
package child
