// Package kubernetes is a driver for Kubernetes: the lines are Leases (coordination.k8s.io) of one namespace, and nothing else is
// needed, neither a custom resource nor a controller. Applications open it by URL, such as kubernetes://NAMESPACE/PREFIX
// ([Open]), or with a *rest.Config ([New]).
//
// Who runs leader election of client-go today finds the way in docs/kubernetes.md.
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
// Waiting (L3): a watch of all that belongs to one session: its Lease, and its members. Whoever waits for a member watches its
// session; a process has one watch for each session that it waits for. Each session watches itself. If that watch does not tell
// of its own renewals, all are opened anew, and all who wait look.
//
// # Guarded writes
//
// There is no write to several objects. A guarded write (G3) is conditional on the version of what it writes. Before it is sent,
// the record of the guard's line lists what it may reach; then that is read; then the guard is looked for; then it is written.
// Whoever becomes first finds that all in front have gone, then reads that list, and changes (stamps) what is listed. So a write
// that is still on its way meets another version. A write whose guard was found standing was read before the guard went, and so
// before the stamp. No clock is involved, and it does not matter who has taken the guard out. Pins are such writes of the record
// of the line itself. Of a member whose session has ended nobody believes that it is not pinned before it has stamped that
// record, if it lists a pin. Whoever claims an item stamps the item.
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
// end for which nobody waits.
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
// Whoever may write Leases of the namespace may end each session. If an operator deletes the record of an election together with
// the member that leads, one write that this leader has on its way at that moment is not refused: the list of what it may reach
// has gone as well. A member that is shared excludes nobody who is first with it, so its late writes are refused when one that is
// not shared becomes first.
package kubernetes
