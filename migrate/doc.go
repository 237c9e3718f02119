// Package migrate moves a live election from one coordinator to another, without a
// pause and without ever two leaders: from ZooKeeper to etcd, say, while old and new
// processes run side by side. It is a backend made of two backends, which package elect uses like
// any other, and the steps that an operator takes.
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
//  1. [Backend.Begin] puts a gate at the head of E on N: a pinned member, behind which every client
//     waits for ever, ours or foreign. It fails if anybody stands there already. With [Options]
//     Begin processes do this themselves.
//  2. Processes are restarted, one by one, with this backend in place of O. They stand in line on O
//     with the processes that have not been restarted yet.
//  3. When one of these leads, [Backend.Cutover] asks it to seal E on O and to lead on by N alone.
//     Its work does not pause.
//  4. Processes are restarted with N alone. [Backend.Finish] says which members are left on O.
//
// Before the cutover [Backend.Abort] takes the gate away, and E stays on O.
// [Backend.Status] says how far a migration is, which processes run with which coordinators, and
// what is in the way. [Backend.Check] says whether one can be begun from here, and [Backend.Plan]
// what a step would do. Each step can be taken by anybody, again, and after a crash at any point.
// The way back is the same with O and N exchanged: the seal on O is the gate. The command
// "succession migrate" is these methods at the shell.
//
// # Who leads
//
// A process of this backend leads when it is first on O and first behind the gate
// on N. It takes O before N, and joins N only when it is first on O. Its term ends
// when either member is lost, and its deadline is the earlier of the two.
//
// It leads by N alone only if E on O is sealed to N, or N's record says that E has moved. It leads
// by O alone only if N's record says that the migration was aborted, or went back. It is then like
// a client of that coordinator alone; when the migration is begun again, it joins again as soon as
// its work has ended. If neither record says anything, no migration has begun, and it fails with
// [ErrNotBegun]: a process that was started with O and N exchanged would otherwise lead beside a
// client of O alone. It begins no migration unless it is told to, because the records do not show
// the direction.
//
// # Why one leads
//
// Until E on O is sealed, only the first member on O leads: clients of O alone and this backend
// both ask for that, and nobody leads by N alone, because the gate stands. Once the seal is there,
// no other member is ever first on O again, and only the first member on N, not counting the gate,
// leads. The seal is one atomic step at O, so there is no moment in between. What can go wrong
// around it:
//
//   - The leader seals only while it is first on both, as far as it knows. If its
//     session on N is over, its deadline has passed and its term has ended: law L6 holds behind the
//     gate as it does for a leader. E is then sealed and has no leader until somebody takes the
//     gate away. That does no harm.
//   - The leader crashes, or its answer is lost, before the seal: nothing has
//     happened. After it: any process of this backend that joins and finds the seal takes the gate
//     away, or the operator does. The gate of a sealed election has no other meaning, and is known
//     by its position, so that nobody takes away a later gate by mistake.
//   - The leader does not know whether its seal was set: it goes on by both, and tries again. It
//     never leaves O by itself, because that might take the seal away. The end of its session
//     removes its member, but not a pinned one.
//   - An abort first forbids the seal in N's record, and then rewrites E's record on O, whose
//     version the seal names. The leader reads O's record, and then N's. A server that lags behind
//     may have answered, so the leader writes N's record back as it was: if an abort has begun,
//     that write fails. So if the seal is not set when O's record is rewritten, it never will be.
//     If it is set, the abort is too late, and says so.
//
// # One migration at a time
//
// A gate names its migration: from, to and ID. Begin fails if O has the gate of another migration,
// and a process of this backend that meets another migration's gate fails with [ErrOther]. If
// nobody stands in line on either coordinator, two operators who begin to move E in opposite
// directions at the same moment may both put their gates. Then nobody can lead, which is safe. The
// status is [Conflict], and every step and every process reports that. An abort of either migration
// takes its gate away as if it had never been begun, and the other goes on. Before any gate goes,
// one of the two records says which migration goes on; until the first abort is done, an abort of
// the other fails. Abort the migration that moves E from the coordinator where it has not been in
// use: tokens of the other coordinator may be larger.
//
// # Why tokens grow
//
// The token of a process that leads by both is T = max(fenceO + posO, fenceN + posN). Before it
// leads it raises the smaller fence, on condition that its member there stands, so that
// both sums are T. A fence is never lowered. The next leader by either coordinator joined later
// there, and has a larger token than T. If a client of O alone led in between, its token may be
// larger than those on N: the next leader by both raises N's fence above it. The leader does this
// once more before it seals, because O's fence may have been raised meanwhile.
//
// # What others see
//
// A foreign client of O stands in line as before, and waits behind the seal for ever. A client of
// ours gets a [backend.SealedError] with the address of N. Clients of N alone, ours or foreign,
// wait behind the gate. Stop a client that stands there in front of the leader: it keeps the leader
// from N, and so every process of this backend from leading.
//
// A composite that is first on O and cannot get N within [Options] Patience gives O back and joins at
// the end, so that clients of O alone also get their turn. When O is sealed, the first of the
// candidates that wait there learns of it at once and joins N; its exit tells the next. If one of them
// stands still, those behind it join N after their slow re-check.
//
// For the status, a process of this backend marks each of its members: an ephemeral member in the
// line E.migrate-both of the same coordinator has the marked member's position as its value. So the
// values of members stay the user's, and a crash leaves no mark. A member without a mark knows its
// coordinator alone, like a foreign one. That endangers nothing, and the status names it.
//
// # Records
//
// A record that a leader guards moves with its election, and so does the history. Four things
// make that hold wherever a process ends:
//
//   - Before a leader of this backend guards a record for the first time, it adds the name to a
//     list: the record E.migrate-records, on the coordinator where E is, on condition that its
//     member there stands. So the records of leaders that have gone move, too. Reads are not
//     listed, because a session reads for its whole process, not for one election. Every candidate
//     of E may write the list, so it says only where to look: beside the record, in
//     RECORD.migrate-home, the leader writes that it goes with E. A record that the list names, and
//     that has no such note, stays on From, and Finish names it. A list has at most 1000 names, and
//     keeps those of records that are deleted. If the leaders guard more, Cutover and Finish say so,
//     and fail without [Options] Leave.
//   - The records are carried over between the two steps of the cutover, while E on From is sealed and
//     the gate on To stands. The records on From are final then: only a leader guards, and From has
//     none. On To nobody writes: a client of To alone does not lead, and the leader that has sealed
//     delays its guarded writes until the gate has gone. So everybody copies the same, and anybody
//     may copy, again and after a crash. Each write names the version that was read, and demands
//     that the gate stands, so a late request does nothing.
//   - A version says to which coordinator it belongs, so a record that has moved has none of its
//     old versions.
//   - Beside each record that has moved, To has such a RECORD.migrate-home, which names the
//     migration. So processes find the record without knowing the election, or whether it has
//     moved. It is written twice: before the record is, with the version that To's record has then,
//     and after it. If the process ends in between, that version shows whether the record has been
//     written: so each record that is carried over costs three writes on To. If To refuses the
//     record, the note says that.
//
// This backend does not know of two kinds of records whether they go with E. The first is a record
// that only leaders of From alone have written. Cutover and Finish name such records beside E, such
// as E-position, and fail until [Options] Carry or Leave says what to do with them. At the top
// level of a coordinator, where records cannot be listed, they find only E-position. If E is the
// line of a task, such as bus-run-orders, they also find its records, bus-position/orders and
// bus-tasks/orders. The second is a record that is written without a guard. It stays on From until
// somebody copies it, because nobody can know which such write there is the last.
//
// If a record could not be carried over, because a right was missing or From could not be reached,
// Finish does it, where it is sure that no client of To alone has written or deleted the record since.
// Where Finish cannot know, it names the record, and a person decides: one that may have been on To
// and deleted since goes along if [Options] Carry names it; one that To has with another value,
// which such a client has written or which is from when E was there before, must be made the same on
// both. Until then processes of this backend read From's.
// One that the cutover did not even announce, and that To does not have, goes along: that a client of
// To alone has made it since, and deleted it, cannot be seen. A record that a leader of this backend
// guards for the first time after the cutover is carried over by that write, if To has none.
//
// After the cutover, clients of To alone write records that no migration has brought there. They write no
// notes, so all processes of this backend read such a record on From, and find what From has, or none, until
// a leader of this backend has guarded it. That leader takes nothing back: at a version that was read on
// From, its write is refused. If From has another value, the error says that a person must make both the
// same; if From has none, To's counts from then on. So restart all processes with To alone soon after the
// cutover, and before From is switched off.
//
// # Two names of one coordinator
//
// Two URLs may mean one coordinator: a host has many names, a path may be a link. So before Begin
// puts a gate, it joins the line E.migrate-probe on From, and looks for its member in that line on
// To. If the gate of a migration between two names of one coordinator stands nevertheless, both
// records are one. The status is then [Aliased], every step and every process reports that, and an
// abort takes the gate away.
//
// # What it does not promise
//
// Before the cutover both coordinators are needed to lead: availability is their product.
// After it, O is only needed for what the record on N does not say.
//
// If the leader loses From right after the seal, for longer than [Options] Patience, it takes the
// gate away without the records; see above.
//
// A record that a leader guards is the leader's to write. What another process writes there without a guard, while the
// record is carried over, may stay on O, although the write was confirmed.
//
// After an abort, a foreign client that is started on N leads there: no record stops it. Nor does
// anything stop people who run one election on two coordinators without any gate. An operator who
// deletes the gate or the seal by hand takes the protection away.
//
// # Where what is
//
// This package is the operator's procedure; internal/composite is the backend and its
// sessions. Both do what internal/protocol decides, which sends no requests of its own.
package migrate
