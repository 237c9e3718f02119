// Package local elects a leader among the processes of one machine. The coordinator is the
// machine's kernel and a folder. There is no server and nothing to configure. There is no
// session time either, because the kernel knows at once that a process has died.
//
//	b, err := succession.Connect(ctx, "local:/var/lib/app")
//
// Package backend has the words and the laws (L1 to L10) that are named here.
//
// # Members
//
// Each member is a FIFO in the folder of its election. The process that joined opens the
// FIFO for writing and takes a flock(2) lock on it, both on one descriptor. The kernel closes that
// descriptor when the process dies, whatever the cause. So
//
//   - a member stands as long as its lock is held. Everybody can test that: by an attempt to lock
//     it that does not block. A process that is stopped (SIGSTOP) keeps its members; a process that
//     is killed loses them as soon as kill(2) takes effect.
//   - the candidate just behind opens the FIFO for reading and sleeps in the runtime's
//     poller until it reads end of file (L3). That wakes this candidate alone, takes no
//     thread and no polling, and costs microseconds. Linux releases the lock before the
//     pipe (__fput in fs/file_table.c), so a candidate that has read end of file finds the lock
//     free.
//   - a member whose FIFO was removed (rm) has gone too. An inotify(7) watch on the FIFO
//     tells the process that joined it, and the candidate just behind.
//
// A member takes one descriptor, and a candidate that waits one more. A session takes one for the
// folder and one for @lock, and runs three goroutines.
//
// # The folder
//
//	@counter          up to where numbers are reserved, for positions and versions of all elections
//	@next             the next of these numbers
//	@counter-1 @next-1  the same, used while a process is stopped that has locked the first; and so on to 3
//	@lock             locked by byte range: three bytes for each name, and one for each counter
//	@tmp-* @new-*     files and folders that are being made, before they are moved to their place
//	a/b/@state        the record a/b, and the pinned members of the line a/b, in order
//	a/b/@line         the other members of the line a/b, in order: keys and values
//	a/b/@n_0000000123 the FIFO of the member of line a/b with the position 123
//
// The folder of a name is its path. Files of this package begin with '@', which no name
// contains. So no election, record or member can collide with another, and one election can
// be called a and another a/b (L7).
//
// These files carry a checksum. @state, @line and @counter are never changed in place but replaced
// (written beside, then moved), so a process that is killed at any instant leaves the old file or the new
// one. @next is changed in place, by one write of a few bytes. If it cannot be read, it says nothing.
//
// A version is a number of the counter, and a condition is checked under the lock of the name under which the
// record is written. The counter outlives the record, so no version comes again when the record is
// deleted and made anew.
//
// A process that only looks makes neither folders nor files.
//
// A member that leaves writes nothing, so the folder of a name outlives its last member: the folder
// of a lock that is taken now and then is not made anew each time. A process that makes the folder
// of a new name looks at two others at random. It removes them if they hold no record and no
// member, and if nothing was done there for a minute. It leaves a folder with neither @state nor @line
// alone, because that may belong to the application. So after 20,000 names were used once each, the top
// folder does not keep 8 KiB for each of them.
//
// # What outlasts a power loss
//
// A process that is killed loses nothing that it has written, because the kernel has it. A power loss, or
// a crash of the kernel, loses what was not synced (fsync(2)). So does a file system that goes away and comes back
// under a running kernel, such as a disk that is pulled out. What comes back then is an old file, a torn one, or
// none. These are synced before the call returns:
//
//   - Records, headers and pinned members: Put, Pin and Append sync @state and the folder that it is in;
//     Delete, Remove, and Leave of a pinned member do the same. The FIFO of a pinned member is in the same folder.
//     If there was no @state, the folders above are synced before it is moved there, up to the top folder. So if
//     it is there, the path to it is on disk, also if its writer was killed right afterwards.
//   - That a record or pinned member is there or not, if one of these calls finds that nothing is left to do: another
//     process may have been killed when it had done that, and had not synced it yet.
//   - @counter and the top folder, before one of the numbers is used that it reserves. If there was none, also
//     the folders above, up to the root of the file system.
//
// These are not synced, because nothing needs them after a power loss:
//
//   - @line. All processes are dead then, and with them the members that are not pinned. On another
//     mount of the file system nobody holds a FIFO. An old @line lists only such members, and no
//     position is used again. A @line that cannot be read is as good as none if nobody holds a FIFO of the
//     folder. Whoever joins removes it before it makes a FIFO. So if somebody holds one, and the file still cannot be
//     read, it was damaged since, and that is ErrDamaged: nobody leads beside a member that it may have listed.
//   - The FIFOs of such members, the folders that are made for them, and @lock.
//   - @next. A session does not outlive a power loss, nor its file system, so it trusts @next only when it has drawn a
//     number itself. For its first number it takes the largest one that any @counter says. All that were
//     used before are below that, by whomever. Then it reserves the next ones.
//   - That an empty folder was removed.
//
// The kernel's boot ID (/proc/sys/kernel/random/boot_id) is not asked which files are of an earlier life: systemd-nspawn and
// LXC show each container one of its own, and containers may share a folder. A disk that was pulled out comes
// back under the same ID.
//
// So to lock and to unlock what nobody else wants syncs nothing. A session syncs one file and one folder at its first
// number, and again when 1024 more have been used. A write syncs one file and one folder.
//
// # Who may write to the folder
//
// A user who may write to the folder can do anything to its elections. The driver makes sure that
// such a user can do no more than that, also if another user, such as root, uses the folder. It
// reaches files in one way (dir_linux.go, make_linux.go):
//
//   - A link on the path of the top folder must be root's, this user's, or the folder's owner's. So
//     nobody can lead a process of root to another folder of root.
//   - A session opens the top folder, checks it, and from then on starts at that descriptor. It goes
//     from there step by step (openat(2)), and follows no link. So nothing outside the folder is
//     read, made or removed, whatever is renamed or linked meanwhile. The driver changes the times
//     of a FIFO, which wakes others, only if the FIFO has no other name (hard link).
//   - Each folder on the way must be on the file system of the top folder, and belong to its owner or
//     to root. If a group may write to the top folder, everybody in the group is trusted, and the
//     folders below may belong to any user. A folder to which everybody may write is refused.
//     Whoever lists all elections passes through a folder that would be refused, and fails only if it has an
//     election below it, or cannot be read: nobody is told of a part as if it were all.
//   - A file must be a plain file, or a FIFO, and is opened so that the open cannot block. Files
//     larger than 64 MiB are neither read nor written. A file that does not belong to the owner
//     must have no other name (hard link). Anything else is ErrDamaged.
//   - A new file or folder is made under a name that is not in use (O_EXCL), gets its rights, and
//     is then moved to its place (linkat(2), renameat2(2)). So nobody sees it before its rights are
//     complete, also if its maker is killed.
//   - Files that root makes belong to the owner of the top folder, so that root can work in the
//     folder of a service. A process changes the owner and the rights of a file only if it has just
//     made that file, and the file has no other name (hard link). It also corrects the rights of a
//     @lock that the owner of the top folder has made, if the file has no other name: earlier
//     versions let everybody open it.
//
// Only users who may write to the folder can open files in it. A user who can open @lock can lock
// it, and so keep everybody from joining; a user who can open a FIFO can make a dead member look
// alive. So files get the rights 0660 if the group may write to the top folder, and otherwise 0600,
// and folders get no rights for others. Neither the other rights of the top folder nor the umask
// change that.
//
// An operator ([coordinator.Operator]) reaches files in the same way.
//
// os.Root would not be enough. It follows links below the root, does not look at owners, has no
// FIFOs, and opens everything that it finds.
//
// # When the folder moves
//
// A session belongs to the folder that it has opened. When the path leads elsewhere, because that folder or
// one above was moved, removed, or covered by a mount, others no longer find the members of the session,
// and may lead in a new folder. So the session ends with [backend.ErrSessionEnded]. The session
// checks that in each call, also in [backend.Session] Err, and otherwise once a second. The next
// session opens the folder that is then at the path, and checks it as the first one did. It refuses
// a folder that belongs to another user than before. In a container the path leads to the folder that was mounted
// there, wherever that is moved: nothing ends the session then, unless the folder is removed.
//
// Once a second the session also checks that the FIFO of each member that is first is still at its
// path: that ends the term if the election's own folder was moved. None of this takes a descriptor,
// so it also works in a process that has none left. Until the check, for up to a second, there can
// be two leaders, because no lock of the kernel belongs to a path. A write on condition of a member
// fails at once.
//
// # The recipe
//
// A writer holds a lock of the name in @lock, for as long as the disk takes. If a process is
// stopped in the middle of a write, other writers to the same name wait for it, and give up after
// [Options] LockTimeout. Writers to other names do not wait: a process that is stopped while it
// draws a number has one counter locked, and the others use the next one. A reader needs no lock,
// with one exception below, so it also works on a file system that has become read-only: there a
// leader goes on, and the next in line follows it. There are two kinds of writes:
//
//   - Most writes keep out only other writers. @state and @line are each replaced in one step, so a reader sees
//     each as it was before or after. To join is such a write: no candidate waits on its
//     way to leadership because another one joins.
//   - A write on condition of a member ([backend.If]), a pin, and the removal of a pinned member
//     also keep out candidates that must know the result before they lead.
//
// Every reader reads @line before @state, and puts both together by position. A member that is in both is
// pinned. It does not see both at one moment, and need not:
//
//   - A candidate sees everybody who stands in front of it. They had joined before it did, so each is in
//     @line, or was pinned and is in @state. A pin is in @state before a later Join takes the member out of @line,
//     and the removal of a pinned member takes it out of @line first. (Ahead, WatchPlace)
//   - The header is no older than the line, as law L2 and [backend.Session] Line ask. The header and a pin are
//     written in one step, and are both in @state: who sees a seal sees its member. (Ahead, Line, Head, Pin)
//   - What the kernel says of a FIFO is asked after both files were read. If a member seems to have gone, the files are read
//     again under the lock that keeps pins, guarded writes and removals out. Joins may go on, and change nothing in front of
//     those who stand. (Ahead, Line, Head, Lines, Survey)
//   - An observer might see a pinned member in a newer @state, and not the one in front of it, who joined after @line
//     was read. So if anybody is pinned, the reader reads @line once more, and adds those who stand in front of the last pinned
//     one. In front of that one nobody joins. (Line, Head, Free, Survey)
//   - Records are in @state alone, and so is whether a member is pinned. (Get, List, Watch, Gone)
//   - Writers hold the lock of the name, so nothing changes meanwhile. (Join, Put, Pin, Remove, guarded writes)
//   - Each change of one of the two files wakes those who watch the name. Each waiter that wakes reads both.
//
// Joining (L1): under the lock, Join takes the next number, makes and locks
// the FIFO, and then writes the member into @line. A FIFO that neither file lists is no
// member. All who join at the same time in one session join with one write. Now and then, and
// always in a short line, Join removes FIFOs that are not listed, and removes dead members from
// @line. So Join is as fast in a long line, except that it copies one longer file.
//
// If the process fails in the middle of a Join, the member does not stand: no
// process holds its FIFO. Its number may be lost, and is never used again. When Join returns, the member is in
// @line, and so are all members before it that stand and are not pinned.
//
// Whoever finds nobody in the line while it joins is first, and Join says so: it holds the lock of the line, as who looks
// again does (see below).
//
// Looking (L2): a candidate reads both files, and tests its own lock and those of the members in
// front of it, from the nearest on, until it finds one that stands. If a member seems to have gone,
// the candidate looks again under a shared lock of the line, which keeps out the second kind of
// writes. A write on condition of the member that has gone has then either happened or will be
// refused. A pin of it is in @state by then, because a process that has let go of a member cannot
// pin it.
//
// Between the departure of a leader and the next term there is only that lock, one look at both files,
// and a look whether the heir's own FIFO is there. These steps are not needed:
//
//   - To open @lock. A backend keeps it open, and locks the byte in it if nobody is in the way
//     (glance_linux.go). It is the same lock: only one goroutine at a time looks through that
//     descriptor, and it then checks, as all do, that it is still the file at the path.
//
//   - To test the lock of the member that has gone. Its FIFO has read end of file, so nobody holds
//     it, and nobody will: only Join makes and locks a FIFO, under a position that is used once.
//     Only a pin can still keep that member in line. The pin is in @state, which is read after end
//     of file and under the lock; a pinned member is tested.
//
//   - To test the lock of the heir itself. Its own session holds it, on a descriptor that only
//     Leave and the end of the session close, and both forget the member first. Only an operator
//     may have removed its FIFO: so the file at the path must be the one that the session holds.
//
//   - To close the FIFO of the member that has gone. The last process to close a removed file
//     removes it from the disk, and may wait for others that write there. So the heir does that
//     only when it watches its own place, or leaves.
//
// None of these steps would put anything on the disk: a handover writes nothing. If the kernel
// allows it, not even the time at which the files were read is written.
//
// A candidate never again tests a member that it has found gone, because nobody joins in front of
// it. The first in line also marks its FIFO: when it has gone, the candidate behind it knows that
// nobody else is left in front. So a handover takes a few system calls in a line of any length. The
// mark is in the memory of the kernel (F_SET_RW_HINT, fcntl(2)). Where it cannot be set, the heir
// tests the others.
//
// Waiting (L3): WatchPlace opens the FIFO of the one ahead, and sleeps until that is closed or
// removed. Behind a pinned member it waits for changes in the folder instead: @state has the header.
// It never asks again from time to time. If both members belong to one backend, Leave itself wakes
// the waiter, because Go asks its poller only when no goroutine has anything to do.
//
// Leaving (L4): Leave closes the FIFO and then removes it. It takes no lock and writes nothing, so
// it also works on a full disk. The FIFO's name has the member's position, which no later
// member gets.
//
// Pinning: a pinned member is in @state, and stands as long as its FIFO exists,
// whether or not a process holds that. To remove it, Leave writes @state. Until then, and until a Join removes dead
// members, it may be in @line too.
//
// Items (L10): Append joins a member that is pinned at once, and closes its FIFO. Remove holds the
// locks of both lines, looks whether the other member stands, and takes the item out of @state as
// Leave does. Claim holds the lock of its own line, and a lock that keeps others from deciding in
// the item's line.
//
// Watching a line (L3): the files tell of joins, and of the exits of pinned members. Only its FIFO
// tells that another member has gone: WatchLine reads each FIFO, with a descriptor and a goroutine.
//
// A session ends when it is closed, or with its process. It writes nothing after that (L5),
// and has no deadline (L6).
//
// # Positions
//
// Positions, and with them tokens, come from a counter, which belongs to no election: they
// go on growing when the folder of an election is deleted. @counter says up to where numbers are reserved, and @next
// which is the next one, and up to where they are reserved on disk. That may be less than @counter says, if a process was killed
// before it had synced @counter. A number is drawn under the lock of one counter, and is larger than
// what any @next says. It is used when @next says so, and only if it is reserved on disk. So within a
// name numbers grow, whichever counter they come from. Each session leaves a gap, because its first number is the largest
// that is reserved. In a new folder numbers begin at the
// number of microseconds since 1970, so tokens also grow if the whole folder was lost, as far as
// the machine's clock is right, and fewer than a thousand sessions a second draw numbers.
//
// If @counter says less than @next, or than a number that is known to be in use, an old copy was put back, and that is
// [backend.ErrReset].
//
// # For operators
//
// To remove a member, remove its FIFO. To clear an election, remove its folder. The
// processes notice both at once. Move or remove the top folder, or mount something over it, only while
// nobody uses it. If a file
// is damaged, [ErrDamaged] names it, and nothing is guessed from it. The files of another version of this package
// that has written them otherwise are refused in the same way: end all processes of the one before the other is used.
//
// # What it needs
//
// The folder must be on a file system of this machine, such as ext4, XFS, Btrfs, ZFS or
// tmpfs. This package refuses file systems that other machines may share, such as NFS, and file
// systems that it does not know: locks and FIFOs do not reach from machine to machine. Containers
// on one machine may share a folder.
//
// The system must be Linux. On other systems the package compiles, and Open fails with
// [errors.ErrUnsupported].
//
// # What it does not promise
//
// A member belongs to the process, not to its children: all descriptors are close-on-exec,
// so children started with package os/exec never get one. If nobody is to lead before a
// child has died too, give the child the files of [elect.Term.Files]; succession run does so
// with the guard of its command.
//
// If the user's inotify instances are used up (fs.inotify.max_user_instances, 128 by
// default; a backend with a session takes one), deaths and departures are still noticed at
// once. Removals by an operator, and changes of records, are then noticed within about a
// second.
//
// [elect.Term.Files]: https://pkg.go.dev/github.com/succession-dev/succession/elect#Term.Files
package local
