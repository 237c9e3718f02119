// Package migrate moves a live election from one coordinator to another, without a
// pause and without ever two leaders: from ZooKeeper to etcd, say, while old and new
// processes run side by side. It is a backend made of two backends, which package
// elect uses like any other, and five steps for the operator.
//
//	b := migrate.New(old, new, &migrate.Options{From: "zookeeper://h1,h2,h3", To: "etcd://h4,h5,h6"})
//	err := elect.New(b, "reports", nil).Run(ctx, work)
//
// or, by URL, migrate:?from=zookeeper://h1,h2,h3&to=etcd://h4,h5,h6.
//
// # The procedure
//
// Election E moves from coordinator O to coordinator N.
//
//  1. [Backend.Begin] puts a gate at the head of E on N: a pinned member, behind
//     which every client waits for ever, ours or foreign. It refuses where anybody
//     stands there already. Processes do it themselves with [Options] Begin.
//  2. Processes are restarted, one by one, with this backend in place of O. They
//     stand in line on O with those that have not been restarted yet.
//  3. [Backend.Cutover] asks the leader, when that is one of these, to seal E on O and
//     to lead on by N alone. It does not pause.
//  4. Processes are restarted with N alone. [Backend.Finish] says who is left on O.
//
// Before the cutover [Backend.Abort] takes the gate away, and E stays on O.
// [Backend.Status] says where a migration is, who runs how, and what is in the way;
// [Backend.Check] whether one can be begun from here; [Backend.Plan] what a step would
// do. Each step can be taken by anybody, again, and after a crash at any point. The way
// back is the same with O and N exchanged: the seal on O is the gate. The command
// "succession migrate" is these methods at the shell.
//
// # Who leads
//
// A process of this backend leads when it is first on O and first behind the gate
// on N. It takes O before N, and joins N only when it is first on O. Its term ends
// when either member is lost, and its deadline is the earlier of the two.
//
// It may lead by one coordinator alone only where the other one says that the election
// is there: by N where E on O is sealed to N, or N's record says that it has moved; by O
// where N's record says that the migration was aborted, or went back. It is then no
// different from a client of that coordinator alone. When the migration is begun again, it
// joins again as soon as its work has ended. Where neither record says anything, no
// migration has begun, and it refuses with [ErrNotBegun]: one that was started with O and N
// exchanged would lead beside a client of O alone. It begins no migration by itself unless it
// is told to: records cannot tell in which direction.
//
// # Why one leads
//
// Until E on O is sealed, only who is first on O leads. Clients of O alone and this
// backend both ask for that, and nobody leads by N alone: the gate stands. When
// the seal is there, nobody but who set it is ever first on O again, and only who is
// first on N, gate aside, leads. The seal is one atomic step at O, so there is no
// moment in between. What can go wrong around it:
//
//   - The leader seals only while it is first on both, as far as it knows. If its
//     session on N is over, its deadline has passed and its term has ended: law L6 holds
//     behind the gate as it does for a leader. E is then sealed and has no leader until
//     somebody takes the gate away, which is harmless.
//   - The leader crashes, or its answer is lost, before the seal: nothing has
//     happened. After it: whoever finds the seal takes the gate away, any process of
//     this backend that joins, or the operator. The gate of a sealed election has no
//     other meaning, and is known by its position, so that a late hand takes away no
//     later one.
//   - It does not know whether its seal was set: it goes on by both, tries again,
//     and never leaves O by its own hand, which might take the seal away. Its session
//     does that, and leaves what is pinned.
//   - An abort first forbids the seal in N's record, and then touches E's record on O,
//     whose version the seal names. The leader reads O's record, and then N's. As that
//     may be read from a server that lags behind, it writes it as it was: if an abort
//     has begun, the write is refused. So a seal that is not set when O's record has been
//     touched never will be; and if it has been, the abort is too late, and says so.
//
// # One migration at a time
//
// A gate names its migration: from, to and ID. Begin refuses where O has the gate of
// another one, and a process of this backend that meets another migration's gate
// refuses with [ErrOther]. Two operators who begin to move E in opposite directions
// at the same moment may both put their gate, if nobody stands in line on either
// coordinator. Then nobody can lead, which is safe; the status is [Conflict], every step
// and every process is told so, and an abort of either takes that one's gate away as if
// it had never been begun. The other goes on: one of the two records says, before any
// gate goes, which migration that is, and an abort of the other is refused until the first
// is done. Abort that which moves E from where it has not been in use: tokens
// of the other coordinator may be larger.
//
// # Why tokens grow
//
// The token of a process that leads by both is T = max(fenceO + posO, fenceN + posN). Before it
// leads it raises the smaller fence, on condition that its member there stands, so that
// both sums are T. A fence is never lowered. Whoever leads next by either coordinator
// joined later there, and has more than T. A client of O alone that led in between is
// behind on N, but not on O: the next that leads by both raises N above it. The
// leader does this once more before it seals, as O's fence may have been raised meanwhile.
//
// # What others see
//
// A foreign client of O stands in line as ever, behind the seal for ever. One of ours
// gets a [backend.SealedError] with the address of N. Clients of N alone, ours or foreign,
// wait behind the gate. One that stands there in front of the leader is to be stopped: it keeps
// the leader from N, and so every process of this backend from leading.
//
// A composite that is first on O and cannot get N within [Options] Patience gives O
// back and joins at the end, so that clients of O alone are not starved. Those who wait on
// O when it is sealed join N after their slow re-check, not in the order in which they stood.
//
// A process of this backend marks its members for the status, by an ephemeral member in
// the line E.migrate-both of the same coordinator with the member's position as its
// value. The values of members are the user's and stay as they are, and a
// crash leaves no mark. A member without one knows its coordinator alone, as a foreign
// one does; it endangers nothing, and is named.
//
// # Records
//
// A record that a leader guards moves with its election, and so does the history. Four things
// make that hold wherever a process ends:
//
//   - A leader of this backend writes down that it guards a record before it does so for the first time:
//     in the record E.migrate-records, on the coordinator where E is, on condition that its member
//     there stands. So what a leader has guarded that is gone by now moves, too. Reads are not
//     written down: a session reads for all of its process, not for one election. Every candidate of E may write
//     that list, so it says only where to look: beside the record, in RECORD.migrate-home, the leader writes that it
//     goes with E. What the list names and no such record claims stays on From, and Finish names it.
//   - The records are carried over between the two steps of the cutover, while E on From is sealed and
//     the gate on To stands. What is on From is final then: only a leader guards, and there is
//     none there. On To nobody writes: a client of To alone does not lead, and the leader that has sealed
//     waits with its guarded writes until the gate has gone. So all who carry over copy the same, and
//     anybody may, again and after a crash. What they write names the version that they have
//     read, and demands that the gate stands, so a request that comes late does nothing.
//   - A version says which coordinator it is of, so a record that has moved has none of its old versions.
//   - Beside each record that has moved, To has such a RECORD.migrate-home, which says by which migration. By
//     that others find it who know neither the election nor whether it has moved.
//
// Of two kinds of records this backend cannot know that they go with E. One that only leaders of From alone
// have written is like that of anybody else: Cutover and Finish name those that stand beside E, as
// E-position does, and refuse until [Options] Carry or Leave says what becomes of them. At the top
// level of a coordinator, where records cannot be listed, E-position alone is found. One that is written
// without a guard stays on From, as nobody can tell when the last such write there has happened.
//
// What could not be carried over, for the lack of a right or of From, is carried over by Finish, unless
// there is such a record on To by then, or it is named. A record that a leader of this backend guards for
// the first time after the cutover is carried over by that write.
//
// # Two names of one coordinator
//
// What a URL says tells little: a host has many names, a path may be a link. So before a gate is put, a
// member joins the line E.migrate-probe on From, and is looked for in that line on To. Where
// the gate of a migration between two names of one coordinator stands nevertheless, both records are one:
// the status is [Aliased], every step and every process is told so, and an abort takes the gate away.
//
// # What it does not promise
//
// Before the cutover both coordinators are needed to lead: availability is their product.
// After it, O is not needed any more, except for what the record on N cannot tell.
//
// Where the leader loses From right after the seal, for longer than [Options] Patience, it takes the gate
// away without the records; see above.
//
// After an abort a foreign client that is started on N leads there: no record stops it. Nor
// is anybody stopped who runs one election on two coordinators without any gate. An
// operator who deletes the gate or the seal by hand takes the protection away.
//
// # Where what is
//
// This package is the operator's procedure; internal/composite is the backend and its
// sessions. Both do what internal/protocol decides, which sends no requests of its own.
package migrate
