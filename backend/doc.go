// Package backend is the contract between the election in package elect and a
// coordinator: a ZooKeeper ensemble, an etcd cluster, a Consul cluster, or the
// kernel of one machine. Applications need it only for [Open]; the rest is the
// page to work from when writing a driver for another coordinator.
//
// # The line
//
// A coordinator is modelled as what an election needs and no more: named lines.
// A candidate joins at the end of a line and stands there as a [Member]. It asks
// who stands just in front of it, and waits until that one, and nobody else, has
// gone. The member with nobody in front of it leads. Members are ephemeral: when
// the [Session] that joined them ends, they leave. A member that has been pinned
// is permanent: it outlives its session, and whoever stands behind it waits.
//
// The core is one loop over this contract, and it knows no coordinator:
//
//	m, _ := s.Join(ctx, line, value)
//	for {
//		p, _ := s.Ahead(ctx, m)
//		if p.First {
//			return p.Token // leads
//		}
//		s.Gone(ctx, p.Ahead)
//	}
//
// # Laws
//
// A driver must keep these laws; package conformance checks them, by the same
// numbers.
//
//   - L1: Join adds exactly one member, behind all that ever joined. When its
//     answer is lost, the session finds its own member, or proves that there is
//     none, before it creates another. No failure leaves a member that nobody owns.
//   - L2: Ahead and Line are at least as fresh as this session's last Join and
//     last Gone. A member that was missing once never comes back. Ahead brings the
//     election's record, as of no earlier than the line. It costs one round trip:
//     what it reads, and the heartbeat where the deadline needs one, go out
//     together. It fails with [ErrNotMember] when m itself is not in line.
//   - L3: Gone never misses a departure and wakes for its member alone. Waiting
//     costs the coordinator nothing but what keeps the session alive. A caller
//     guards against a watch that died unseen by asking Ahead again about once in
//     a session time ([Session] TTL); calling Gone again for the same member
//     therefore must not pile anything up.
//   - L4: Leave is idempotent and guarded: it removes m and never another member,
//     not even one that has come to stand under the same key.
//   - L5: when the session ends, Done closes and every call fails with
//     [ErrSessionEnded]. Nothing queued under one session runs under the next.
//   - L6: Deadline is never later than the end of the session, by the coordinator
//     or by its own hand: it has passed before any member of an ended session goes.
//     It counts from when a request was sent, never from when its answer came, and
//     a late answer never revives a deadline that has passed while somebody led.
//   - L7: election E keeps its own record at E, its members under E/, and nothing
//     else there: foreign participants list that folder.
//   - L8: member values are UTF-8, at most [MaxValue] bytes, and are never
//     rewritten while the member stands.
//
// # Position, fence, token
//
// A member's position is its creation index in the coordinator's log: a 64-bit
// number that is unique and grows over the life of the cluster (ZooKeeper czxid,
// etcd create revision, Consul CreateIndex). The token of a term is
//
//	fence + position
//
// where the fence is a number in the election's own record ([Header]), 0 until
// somebody raises it. Ahead reads it no earlier than the line itself. Leadership
// passes in the order of positions, so tokens grow without a write on the way to
// leadership. They grow over the deletion of an election's path, too: whoever raises
// a fence keeps it in another record first, of the election's name with ".fence" at the
// end, from which package elect restores it. A backend has nothing to do for that.
//
// # Abilities
//
// What a backend may lack: sessions that end by time (then Session TTL is 0), pins
// ([NoPins]), and records ([NoRecords]). Package elect works without; package migrate
// needs pins and records.
//
// # Ambiguity
//
// An answer that was lost is not a "no". A driver resolves the ambiguity itself
// in Join, Leave and Pin, where a wrong guess would leave a ghost or two leaders.
// In Put and Delete it reports [ErrUnavailable], and the caller reads the record
// again: every write gives the record a version that it never had before.
//
// # Clocks
//
// A deadline must not be stretched by a machine that was suspended: Go's
// monotonic clock stands still meanwhile. Drivers of remote coordinators measure
// elapsed time as the larger of the monotonic clock and, on Linux, CLOCK_BOOTTIME
// (clock_gettime(2)). Deadline is therefore asked for anew at each use and never
// kept.
//
// # Concurrency
//
// A Backend and its Session are used by many goroutines at once. Every call
// returns promptly when its context ends, also when the coordinator is
// unreachable; whatever it had sent is then the session's to clear up.
package backend
