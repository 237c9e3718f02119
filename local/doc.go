// Package local elects a leader among the processes of one machine. The
// coordinator is the machine's kernel and a folder: there is no server, nothing
// to configure, and no session time, as the kernel knows of the death of a
// process at once.
//
//	b, err := backend.Open(ctx, "local:/var/lib/app")
//
// # How it works
//
// Each member is a FIFO in the folder of its election. Its owner holds it open
// for writing and holds a flock(2) lock on it, both on one descriptor that the
// kernel closes when the process dies, in whatever way. So
//
//   - a member stands as long as its lock is held, which anybody tests with a
//     lock attempt that does not block. A process that is stopped (SIGSTOP) keeps
//     its places; one that was killed has lost them when kill(2) has taken effect.
//   - the candidate behind it has the FIFO open for reading and sleeps in the
//     runtime's poller until it reads end of file. That wakes one waiter, takes no
//     thread and no polling, and costs microseconds. Linux releases the lock
//     before the pipe (__fput in fs/file_table.c), so whoever has read end of file
//     finds the lock free.
//   - a member whose FIFO was removed (rm) has gone too. An inotify(7) watch on
//     the FIFO tells its owner and the one behind it.
//
// One who waits takes one descriptor, and a backend with a session two goroutines.
//
// To leave is to close and remove one's FIFO: it takes no lock and writes
// nothing, and works on a full disk.
//
// # The folder
//
//	@counter          the next position or version, for all elections of the folder
//	@lock             locked by byte range: one byte for each name, and for @counter
//	@tmp-*            files on their way to being renamed into place
//	a/b/@state        the record a/b, and the line a/b in order: positions, values, pins
//	a/b/@n_0000000123 the FIFO of the member of line a/b with the position 123
//
// A name's folder is its path, and the files of this package begin with '@', which
// no name contains: no election, record or member can collide with another, and an
// election can be called a and another a/b. @state and @counter carry a checksum;
// they are replaced (written beside, fsync, rename, fsync of the folder), never
// changed in place, so a process that is killed at any instant leaves the old file
// or the new one. A member that stands in @state without its lock is dead, and is
// dropped by the next who writes the file; a FIFO that is not in @state is no
// member, and is removed by the next who joins.
//
// Who only looks makes neither folders nor files. What root writes belongs to the owner of
// the top folder, so that root may look after the folder of a service.
//
// Those who write take the lock of the name for the milliseconds of the write;
// those who read do so without a lock, except that a candidate passes through the
// lock of its election before it takes the place of one that has gone. A write
// guarded by the member that has gone ([backend.If]) has then either landed or will
// be refused. If a process is stopped in the middle of a write, those who want to
// write to the same name wait for it, and give up after [Options.LockTimeout].
//
// Positions, and with them tokens, come from @counter, which belongs to no
// election: they go on growing when the folder of an election is deleted. A new
// folder begins at the number of microseconds since 1970, so tokens also grow over
// the loss of the whole folder, as far as the machine's clock can be trusted.
//
// # For operators
//
// To take a place from a process, remove its FIFO; to clear an election, remove its
// folder. Both are noticed at once. The top folder itself must only be removed
// while nobody uses it. A file that is damaged is reported by name as [ErrDamaged],
// and nothing is guessed from it.
//
// # What it does not promise
//
// The folder must be on a file system of this machine, such as ext4, XFS, Btrfs, ZFS or
// tmpfs. Those that other machines may share, such as NFS, and those that this package
// does not know, are refused: locks and FIFOs do not reach from machine to machine.
// Containers on one machine may share a folder. Other systems
// than Linux are not supported: there the package compiles, and Open fails with
// [errors.ErrUnsupported].
//
// A place belongs to the process, not to its children: all descriptors are
// close-on-exec, so those started with package os/exec never get one. Who wants to be
// succeeded only when a child has died, too, hands it [Backend.Hold]; succession run
// does so with the guard of its command.
//
// When the user's inotify instances are used up (fs.inotify.max_user_instances, 128
// by default; a backend with a session takes one), deaths and departures are still noticed at once, but removals by an
// operator, and changes of records, only within about a second.
package local
