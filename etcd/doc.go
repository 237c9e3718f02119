// Package etcd elects leaders on etcd. It is a driver for package backend:
//
//	b, err := etcd.New(client, nil) // a *clientv3.Client of your own
//	b, err := backend.Open(ctx, "etcd://h1:2379,h2:2379,h3:2379/app?ttl=10s")
//
// # What it keeps
//
// A member of the election E is the key PREFIX + E + "/" + hex(lease), attached to the
// session's lease and ordered by its create revision, which is its position. That is
// what etcd's own elections do, so candidates of this package stand in one line with
// those of etcdctl elect, of package concurrency of etcd's Go client, and of the
// service v3election, and lead in turn with them. Foreign candidates know nothing of
// fences and seals, and lead for longer than they should when they are cut off from
// etcd; ours do not.
//
// A session has one lease at a time, and names its members after the first. Who joins a
// line again under it gets the key hex(lease) + "-2", and so on: nobody parses the name,
// and a second lease would cost a second heartbeat.
//
// A pinned member is the same key without a lease. Records are the keys PREFIX + name,
// without a lease; their version is the mod revision. An election's own record is
// the key PREFIX + E.
//
// etcd's own elections take every key that begins with E + "/" for a member. So the
// elections "svc/a" and "svc/a/b" cannot both be used: Join refuses the second with
// backend.ErrInvalid where the first is in use. Keep records out of the folder E + "/"
// too. Our own candidates pass over what does not belong there.
//
// # How it works
//
// Every call is one transaction, and linearizable. A read, and a write that may be
// repeated, is sent again to another server when it gets no answer in a fraction of the
// TTL. A lost answer to Join is resolved by sending the same transaction again, which
// finds the member that the first has made. What cannot be resolved, because nobody
// waits for it any more, is cleared up by the session, for as long as it lives.
//
// A session keeps its lease alive by a stream of its own, with one request on its way
// at a time. Its deadline is a TTL after the newest confirmed request was sent, less a
// margin for clocks ([Options] Margin). For a leader, an answer alone confirms
// nothing, as a server may give it that is etcd's leader no more: a request through the
// quorum must then show that the term is still the one that the answer was given in.
// That must be the term in which the lease was granted, too. In any other the session
// takes a fresh lease and moves its members to it, as the leader before may still have
// the old one revoked: at once where it leads, and within a quarter of the TTL where it
// waits. When the deadline passes, the session has ended in either case. While etcd is out
// of space it grants no lease; then the old one is trusted once every server has told that
// it is in the present term.
//
// All of a session's watches share a second stream. Each begins with the present, and
// the state is read once it has begun, so neither compaction nor a server that lags
// behind can hide a departure; both streams leave a server that has lost its leader.
//
// The coordinator's log must not go back. When a revision is smaller than one seen
// before, or another cluster answers, the session ends with backend.ErrReset, and the
// backend opens no other.
//
// # What it needs
//
// A server from 3.5.23, 3.6.5 or 3.7.0 on: older ones may confirm a lease that they have
// just revoked (etcd pull request 20616), or lose the deletion that a waiter waits for
// (issue 18089), and those of 3.4 answer the request of a proof without a quorum. With authentication, a candidate of E needs a
// role that may read PREFIX + E and PREFIX + E + ".fence", and read and write all that
// begins with PREFIX + E + "/"; what is missing is named by the error. A gRPC proxy in front of etcd is
// not supported: it gives watches other numbers than they were asked for with.
//
// # What it does not promise
//
// Leases are counted in seconds, from two on with etcd's default settings. etcd ends
// a session up to half a second after its TTL, and a TTL plus an election timeout
// after a change of its own leader. The deadline assumes that clocks run at the same
// rate to within the margin, and nothing of etcd's elections. It does not cover the
// checkpoints of leases (feature gate LeaseCheckpoint) for a TTL of more than 5
// minutes, which is therefore refused.
package etcd
