// Package kubernetes is a driver for Kubernetes: the lines are Leases (coordination.k8s.io) of one namespace, and nothing else is
// needed, neither a custom resource nor a controller. Applications open it by URL, such as kubernetes://NAMESPACE/PREFIX
// ([Open]), or with a *rest.Config ([New]).
//
// If you use client-go's leader election today, read docs/kubernetes.md.
//
// # Objects
//
//   - A session is a Lease that its process renews four times in a TTL.
//   - A member is a Lease with a random name. It counts while the Lease of its session is there, with the UID that it names; or if it is pinned. So
//     one write ends a session with all its members: the deletion of its Lease. What is left of the members is deleted afterwards.
//   - A record is a Lease, also the header of an election. Its value is the holder identity, as text or as base64.
//
// Labels and annotations say the rest; object.go has them. They hold hashes of names, so names may be longer than labels.
//
// Position (L1): the resource version of a member's creation. Of all writes to Leases these versions are one growing order: they
// are revisions of etcd. Kubernetes documents that they can be compared since 1.35 (KEP-5504). Something that rewrites objects,
// such as a change of the encoding in which they are stored, gives them other versions. So the position is noted in the object,
// by a write that is conditional on the version of its creation, before anybody is told that this member is first.
//
// Join (L1) sends its request again under the same name. If an answer was lost and the member is to leave, its name is burnt
// before: it is listed in the session, and never counts from then on, whenever a request that creates it arrives.
//
// Freshness (L2): what one object says is read from etcd. A line is listed from the memory of an API server, at one version,
// which is no earlier than any version that this process has ever been told of. Nobody joins in front of a member, so what stood
// there when it looked first is all that ever does. Refresh renews the session,
// whose version is later than all writes before.
//
// Waiting (L3): whoever waits for a member waits for what happens to its session: to the Lease, and to all members of it. A leader waits
// for what happens to its own member and to the record. A process watches up to a hundred sessions and records with one
// request, which selects them by name. Each of these watches also selects the Lease of the process's own session, which is renewed all the
// time. If a watch has not told of a renewal within half a TTL, it is dead: then all are opened anew, and lists show what they have missed.
//
// # Guarded writes
//
// There is no write to several objects. A guarded write (G3) is conditional on the version of what it writes. Before it is sent,
// the record of the guard's line lists what it may reach; then that is read; then the guard is looked for; then it is written.
// Whoever becomes first finds that all in front have gone, then reads that list, and changes (stamps) what is listed. So a write
// that is still on its way meets another version. A write whose guard was found standing was read before the guard went, and so
// before the stamp. No clock is involved, and it does not matter who has taken the guard out. Pins are such writes of the record
// of the line itself. If the
// record lists a pin, nobody takes a member whose session has ended for one that is not pinned before it has stamped the record. Whoever claims an item stamps the item.
//
// A record that neither has a value nor lists anything is deleted. What is listed for a member that has gone with its session stays until the next one leads, or until the list has grown long, so the
// record of an election that nobody uses any more may stay after that.
//
// # The deadline
//
// The API server ends nothing by time. So sessions observe each other (L5, L6):
//
//  1. A renewal is a write of the session's Lease, conditional on the version that the one before has given it. If it was sent at s and is answered with
//     another version, it was committed at s or later. The deadline is s + TTL. A renewal whose answer was lost moves nothing.
//  2. Whoever observes the session has that version after the commit, at o ≥ s by its own clock, which counts suspension.
//  3. It deletes the Lease at o + TTL + TTL/20 or later, on condition of UID and version. The twentieth is for clocks of different rates. If the session was renewed
//     meanwhile the deletion fails; if it is renewed afterwards, that fails.
//  4. So nobody ends the session before the deadline of its newest renewal that was answered. No clock of a server or of another process is read.
//  5. The UID is in each renewal's answer, and a patch creates nothing. So a session that has ended does not come back.
//  6. An operator who deletes a session or a member does not wait for its deadline, as on every coordinator.
//
// Whoever waits behind a member observes its session. Two of all sessions look at all others about once in a TTL, so that those
// end for which nobody waits. Of n sessions the others look once in 3 TTL, or n/2 TTL if that is more, whether they are among the two: so
// that is how soon somebody takes the part of two that have both crashed. Whoever watches a line depends on neither: it looks at the
// sessions of the line once in one and a half TTL.
//
// # Beside client-go
//
// With [ClientGo] as the format (as=client-go in the URL) whoever is first in a line leads only while it also holds the Lease for
// which candidates of client-go's leaderelection compete, and which client-go calls the lock. Its name is the whole name of the
// election with a dot for each slash: reports, or app.reports with the prefix app. Its holder is what the member says of itself and
// its key, so kubectl get lease shows who leads. All of one line say the same: a leader that was opened without the format holds no lock.
//
//  1. Every writer of a lock names the version that it has read; client-go does, too. So whoever has the lock at a version that it has
//     written knows that nobody else has had it since, until it is written again.
//  2. A candidate of client-go takes the lock when nobody holds it, or when it has seen the same record for the time that the record
//     says, by its own clock; before client-go 0.27 for the LeaseDuration that it has itself. So TTL must not be longer than the LeaseDuration
//     of any candidate. Ahead fails if the holder's is shorter. A candidate compares times in whole seconds. So each of our renewals moves renewTime on by a second at least, whatever
//     the wall clock does: each is another record to whoever sees it. Ours says 21/20 of TTL, in whole seconds, at least.
//  3. A renewal that was sent at s and is answered was committed at s or later, and seen later still. Nobody of client-go takes the lock
//     before s + TTL. That is the deadline of the lock, and the deadline of the session is the earliest of its own and those of its locks.
//  4. If the holder is a member of the same line, it has gone: nobody in front counts, and what has gone is gone for good. Then its
//     deadline has passed, or it has left, or an operator has removed it. The next in line takes the lock at once.
//  5. If the holder is anybody else, the next in line takes it when it has seen the same version for 21/20 of the time that the record says. That
//     is what client-go's leader relies on with its RenewDeadline.
//  6. If nobody holds the lock, it is not certain that nobody leads: a candidate of client-go that is healed clears the lock of whoever leads
//     by then (tryRelease reads the Lease, and then asks its own memory whether it leads). A leader of client-go takes it back when it
//     renews next, after its RetryPeriod. It has time for that: a fifth of the time that its record said, 3 s if nobody has seen that, and then
//     the next in line takes it. So RetryPeriod must not be longer than a fifth of LeaseDuration: it is 2 s of 15 s by default. A lock that one of ours has cleared says so, and is taken at once; so is one that does not exist, if this session has seen no holder of it.
//  7. If our leader's lock is cleared, its watch tells it, and it takes it back by a write on that version: nobody has had it since. If
//     somebody has, which leaseTransitions says, or the holder, its member goes: at once in this process, and then in the line.
//     So does one whose lock could not be renewed until its deadline. The session and its other members stand. But a session has one deadline
//     for all: when that of a lock passes, the terms of its other elections end as well. It stays passed until the member is removed.
//  8. A leader that leaves keeps the lock until its member has gone. If another member stands then, it leaves the lock as it is, and that member
//     takes it by 4. If none does, it clears the lock, as client-go does. A leader that crashes does neither: its heir and client-go's candidates compete for it.
//
// Between 7's clearing and the taking back a candidate of client-go may look, once in its RetryPeriod, and take it. Two lead then, until our leader is
// told: milliseconds. That is client-go's doing, and happens to its own leaders for up to RetryPeriod. What its leaders do while
// they are cut off or after a pause is theirs as well: they may act on beyond what their record says.
//
// Guarded writes go by our line alone. While a candidate of client-go leads, the member of ours that led before may still stand. Then a
// write that it has sent is refused only once another member of ours is first. A format with client-go has neither shared members nor pins:
// candidates of client-go would not wait behind them. Without the format Pin fails if somebody holds the Lease.
//
// # A thousand elections of one process
//
// They share a session, and what they cost at rest is what it costs: four renewals in a TTL, and now and then a list of all sessions.
//
// Watches. An API server hands each write of a Lease to every watch of the namespace that selects by labels (startDispatching in
// cacher.go), and for every ten of them it takes 5 ms of a seat from the share of the writer (mutating_work_estimator.go). By default all
// service accounts share 245 seats. With a watch for each of a thousand elections every write would cost half a second of a
// seat. So they have 11 watches, each of a hundred names. A further name is put into one of these: that is opened anew, and goes on where it
// was. Names that come while it is being opened wait until it is open, and then come in together.
//
// Two other ways were weighed. To watch each record by its own name costs writers nothing. But a connection has a hundred streams, so a
// thousand watches need ten connections; and a watch of one record tells of nothing that is renewed, so each record would have to be read
// once in a TTL. To watch all records of a prefix takes one watch. But then each process is told of every write of every record, those
// of applications too: with ten processes ten events, of which nine concern nobody.
//
// Requests. A backend has at most 32 under way, and a watch counts until it is open. Eight of them may only be urgent: watches of names,
// the taking and renewing of Leases beside client-go, and guarded writes. The renewal of the session is one more, and waits for none. A request that is refused with 429
// keeps its turn until it is sent again.
//
// Breaks. Watches go on where they were, and nobody looks. An API server that was started anew does not know that version any more.
// Then a list for every hundred names shows what there is, and those look whom it concerns.
//
// What stays: each member that joins lists its line once, and for that an API server goes through all Leases of the namespace. So
// the cost of a start grows with the square of the elections; choose another coordinator for ten thousand. And beside client-go each
// leader renews a Lease of its own, four times in a TTL, which is half of what a leader of client-go sends, and watches it by its name.
//
// # What rests on what
//
// Writes and reads of single objects are linearizable, as those of an API server on etcd 3 are. A list "not older than" a version
// shows one version, that one or a later one. Nobody else edits these Leases. An etcd that was restored from a backup is told by
// [backend.ErrReset] to those that were there before alone; raise the fence, as docs/deploying.md says.
//
// # Why not the client of client-go
//
// Of client-go this package uses what reads configurations and credentials. Requests are HTTP/2 and JSON of its own: a few
// hundred lines. A program with an election on it links 333 packages, 140 of them outside of the standard library, and has 10.8
// MB; with the typed client and the leader election of client-go 0.37.2 it is 724, 524 and 26.9 MB (go list -deps, go build
// -ldflags='-s -w', linux/amd64, 2026-11-27). It accepts metadata alone where that is enough, notices within half a TTL that a
// connection was cut, is not held up by the rate limit that client-go puts on all requests of a configuration, and reads
// certificates for each connection, and tokens when one was refused.
//
// # What it does not promise
//
// Whoever may write Leases of the namespace may end each session. If somebody deletes the record of an election, the list of
// what its leader's writes may reach has gone as well: what that leader has on its way then, or sends before it is told, may be done after
// its term. A member that is shared excludes nobody who is first with it, so its late writes are refused when one that is
// not shared becomes first.
package kubernetes
