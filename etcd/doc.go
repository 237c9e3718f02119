// Package etcd elects leaders on etcd. It is a driver for package backend:
//
//	b, err := etcd.New(client, nil) // a *clientv3.Client of your own
//	b, err := succession.Connect(ctx, "etcd://h1:2379,h2:2379,h3:2379/app?ttl=10s")
//
// [Open] lists the parameters of the URL.
//
// # Members and records
//
// A member of election E is the key PREFIX + E + "/" + hex(lease), attached to the lease
// of its session. Its position is the key's create revision. etcd's own elections make
// the same keys. So candidates of etcdctl elect, of package concurrency of etcd's Go
// client, and of the service v3election stand in one line with ours, and lead in turn
// with them. Foreign candidates know nothing of fences and seals, and lead for longer
// than they should when they are cut off from etcd. Ours do not.
//
// A session has one lease at a time. Its members are named after its first lease. If it joins a
// line again, the second member has the name hex(lease) + "-2", and so on: a second lease would
// cost a second heartbeat. "-shared" follows in the name of a shared member. Nothing else in a name
// has a meaning.
//
// A pinned member is the same key without a lease. So is an item, whose name has a random
// number in place of the lease. A record is the key PREFIX + name
// without a lease; its version is the mod revision. The header of election E is the key
// PREFIX + E. A condition is checked in the transaction that writes, and no key ever has the same
// mod revision again, also if it is deleted and made anew, because revisions count for the whole
// cluster. If a restored backup sets them back, sessions fail with [backend.ErrReset].
//
// # How the laws are kept
//
// Every call is a transaction, and linearizable. A read, and a write that may be
// repeated, is sent again to another server if no answer comes in a fraction of the TTL.
//
//   - L1: Join creates the key if it does not exist, and reads it if it does. If the
//     answer is lost, the same transaction is sent again, and finds the member that the
//     first one has made. If the caller has gone, the session deletes the member when it appears,
//     for as long as the session lives. When its leases have gone, no member can appear. Join reads
//     in the same transaction, before it writes, whether the line is empty.
//   - L2: Ahead reads the two youngest keys that are older than m, m itself, and the header,
//     at one revision. The second of the two tells whether the first is the head.
//   - L3: The watches of a session share one stream. Each begins with the present, and
//     the state is read once it has begun. So neither compaction nor a server that lags behind can
//     hide a departure. The session moves the stream away from a server that has lost its leader,
//     does not answer a probe, or lags behind. One probe, three times in a TTL, serves all watches
//     of the session, so a waiter sends nothing at rest. That a server lags behind is seen by the
//     revision that another one has told before, with the answer to a heartbeat if nothing else is
//     sent. So heartbeats and watches go to two servers. If both lag behind, or if the client has
//     one endpoint, and so one connection, a departure is seen when the server has caught up.
//     WatchPlace watches m, and the member in
//     front or the header; if the member in front is pinned or foreign, it watches both. It reads
//     single keys, because nobody joins in front of a member. WatchLine watches all keys of the
//     line, and reads them again when one has come or gone.
//   - L4: Leave deletes the key on condition that it has the create revision of m.
//   - L5: A session ends when it is closed, when its deadline passes, when etcd no longer knows
//     its lease. It also ends when etcd has denied it for a TTL to watch a member of its own, or to
//     remove one that no caller knows of.
//   - L6: See below.
//   - L7: etcd's own elections take every key that begins with E + "/" for a member. So
//     the elections "svc/a" and "svc/a/b" cannot both be used: Join refuses the second
//     with backend.ErrInvalid if the first is in use. Do not give a record a
//     name that begins with E + "/" either. Our own candidates pass over such keys.
//   - L8: Put refuses the key of a member that has a lease, and Pin leaves the value as
//     it is.
//   - L10: Append and Remove are one transaction each, which is sent once. Append names no lease:
//     if its answer is lost, it may take effect after its session has ended. Remove demands that
//     the guard and the item have the create revisions that are their positions. Claim is a Join
//     that demands that the item stands, and that first reads the other claims. The key of an item
//     begins with a revision before its own, so that Free finds the first of many items without
//     reading the others.
//
// # The deadline
//
// A session keeps its lease alive by a stream of its own, with one heartbeat on its way
// at a time. The deadline lies a TTL after the newest confirmed heartbeat was sent, minus a margin
// for clocks ([Options] Margin). When it passes, the session has ended.
//
// While a member leads, an answer alone does not confirm a heartbeat: it may come from a server
// that is no longer etcd's leader. A request through the quorum must show that etcd is still in the
// raft term in which the answer was given.
//
// That must also be the term in which the lease was granted, because a former leader of etcd may
// still revoke a lease from its own term. In any other term the session takes a fresh lease and
// moves its members to it: at its next heartbeat if it leads, so within a quarter of the TTL, and
// within another quarter if it waits. While
// etcd is out of space, it grants no lease. Then the old one is trusted once every server has said
// that it is in the present term.
//
// A heartbeat, its proof, and what a fresh lease takes wait for their answers for a second, or for a
// quarter of the TTL if that is less. What has no answer then is asked of two servers at once, and waits
// for longer: the limit doubles with each attempt that fails, up to a third of what is left until the
// deadline. So a server that stands still leaves time to ask others, and a quorum that takes up to a
// tenth of the TTL for each answer costs no term, while heartbeats are answered; docs/etcd.md says what
// holds if etcd changes its leader meanwhile. All copies of a request for a fresh lease name the same
// lease. Whichever copy is granted, it is after the first was sent, and the lease lasts for a TTL from
// then on.
//
// # What it needs
//
// Servers from 3.5.23, 3.6.5 or 3.7.0 on. Older servers may confirm a lease that they have just
// revoked (etcd pull request 20616), or lose the deletion for which a waiter waits (issue 18089).
// Servers of 3.4 answer the request that must go through the quorum without asking the quorum.
//
// With authentication, use servers from 3.5.33, 3.6.14 or 3.7.1 on: older servers let users prolong
// leases of others, or read more than they may; docs/etcd.md has the list. [Rights] has the roles
// of candidates and others. If a right is missing, the error names it. If only root may list the
// members of etcd (3.6.9), sessions do without the list.
//
// A gRPC proxy in front of etcd is not supported: its watches do not keep the ids that the client
// has given them.
//
// # What it does not promise
//
// etcd counts leases in whole seconds, and with its default settings grants no less than
// two. It ends a session up to half a second after its TTL, and a TTL plus an election
// timeout after a change of its own leader.
//
// The deadline assumes that clocks run at the same rate, within the margin. It assumes nothing
// about etcd's own elections. It does not cover the checkpoints of leases (feature gate
// LeaseCheckpoint) for a TTL of more than 5 minutes, so such a TTL is refused. docs/safety.md has
// the argument in steps, and where it ends.
//
// If an operator deletes the key or revokes the lease of a leader that is cut off, that
// leader believes in its term until its deadline, while another leads: guard writes with
// the token.
//
// etcd's log must not go back. If a revision is smaller than one seen before, or another
// cluster answers, the session ends with backend.ErrReset, and the backend opens no
// other. A process that has just started has seen nothing, and cannot know.
package etcd
