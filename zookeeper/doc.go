// Package zookeeper is the driver for ZooKeeper. It uses the client library
// github.com/go-zookeeper/zk, and is tested with servers 3.8.0 and 3.9.3. Import it for
// its side effect to open backends by URL, or call [New]:
//
//	b, err := backend.Open(ctx, "zookeeper://h1:2181,h2:2181,h3:2181/app?ttl=10s")
//
// Package backend has the words and the laws (L1 to L10) that are named here.
//
// # Members and records
//
// Election E is the persistent znode E. A member is an ephemeral sequential znode under
// it, such as E/n_0000000133, whose data is the member's value. The number that the server
// appends to the name orders the line. A member's position is the czxid of its znode. The name
// of a shared member begins with read-, as in the documented recipe for shared locks, or is as
// the [Format] says.
//
// A pinned member is a persistent znode. ZooKeeper cannot change an ephemeral znode into a
// persistent one, so Pin deletes it and creates another under the same name, in one
// transaction. That has another czxid, so the member's position is appended to its data.
//
// An item (L10) is a persistent sequential znode, with a name like those of members, whose data is
// its value.
//
// The session that has made the znode E deletes it when nobody has stood there for a session time, and it has no
// header; see sweep.go.
//
// The header of E is the data of the znode E. Any other record is the data of a persistent
// znode. The version of a record is the mzxid. A znode without data is no record.
//
// Candidates of other libraries may stand in the same line: ZooKeeper's
// LeaderElectionSupport, Curator's LeaderLatch and LeaderSelector, kazoo's Election, and
// the locks of Curator, kazoo and go-zookeeper. We read the names of all of them. They
// read ours if [Options] As is the [Format] that they use.
//
// # The recipe
//
// A candidate lists the children of E. It leads if its number is the smallest. Otherwise
// it watches the znode of the member just in front, and nothing else, and lists again when
// that has gone.
//
// Joining (L1): a lost answer to a create does not tell whether there is a member. The
// session then makes a quorum write on its next connection, after which an earlier create
// is either visible or refused. It looks for a znode whose owner is this session. A mark
// in the name would not do, because LeaderElectionSupport takes none; the marks of the
// other libraries are there for those libraries. Joins of one session in one line run one
// after another, so there is at most one member to find. If the session cannot find out,
// it ends, and the member goes with it.
//
// Reading (L2): a session has one TCP connection at a time, and only to servers that have
// come as far as the session has seen. The list and the header are read at the same time.
// If the header is older than the list, it is read again. A header with a watch that has not
// fired is not read.
//
// Waiting (L3): when a connection breaks, every watch of the session gets an event, and
// whoever waits reads again on the next connection. So WatchPlace never looks again by the
// clock. The first eight of a line watch the header too. So does who stands behind a pinned member,
// or behind one that may be foreign: that stays when the election moves, and nobody else would pass on the
// word. The random part of our names begins with 5ecc5ecc. A name n_ without one is taken for ours, unless
// [Options] As or NamePrefix is given: then all who wait behind such names watch the header, and each write to it
// costs a read of each. All who wait for one znode share one watch. Only WatchLine watches the list of children. It takes a name that it knows for the member
// that it knows, because ZooKeeper gives each number once as long as the znode E stands.
//
// Leaving (L4): ZooKeeper deletes by name, so the session reads the znode first and
// compares the position, unless a watch on it has not fired. Remove always reads, and deletes in
// one transaction with the check of the other member.
//
// # Sessions
//
// Each session has a zk.Conn of its own (L5). When a session of ZooKeeper has expired, the
// library by itself opens a new one and sends there whatever was queued. That cannot
// happen here: package internal/wire wraps the library's connections, and lets them carry
// one session only. It also breaks a connection on which an answer is due and nothing has come for a
// quarter of the session time: the session then goes to the next server. A session ends when a server says so, when its deadline passes while
// one of its members leads, and when it has heard from no server for two session times.
// Until then candidates that wait keep their session and their place.
//
// # The deadline
//
// A server that is cut off from the ensemble's leader answers pings and reads for
// syncLimit ticks, while the leader ends the session. An answered ping therefore proves
// nothing; an acknowledged quorum write does. The heartbeat is a multi that only checks
// members of the session: it changes nothing and wakes nobody. As long as such a member
// is among the first three, a heartbeat goes out six times in a session time. When a write
// is acknowledged, the deadline counts from when an earlier request was sent: the newest
// one that had been answered [Options] Relay before the write was sent (L6). The file
// touches.go of internal/wire has the reasons.
//
// # Security
//
// TLS and authentication are done under the client library: the wrapper shows the
// credentials on each new connection before the library may send anything. What a backend
// creates can be changed by those whom its [ACL] names, and read by everybody. ZooKeeper
// asks for the right to delete a member on the znode above it. So what protects members
// is the ACL of the election's znode, and whoever made that znode has set it.
// docs/zookeeper.md has the rights that each operation needs.
//
// # What it needs
//
//   - A server must report to the ensemble's leader, within [Options] Relay, which
//     sessions it has heard from. The default is long enough unless minSessionTimeout is
//     set below its default of two ticks.
//   - All servers of an ensemble must grant a session the same timeout
//     (minSessionTimeout, maxSessionTimeout): which server's settings count is known only
//     when a connection is established.
//   - Of the authentication schemes there is digest, and x509 by a certificate of the
//     client. There is no SASL.
//
// # What it does not promise
//
//   - A leader that is not connected to ZooKeeper learns nothing of an operator who
//     deletes its member, or ends its session, before its deadline.
//   - ZooKeeper can make a delete or a write depend only on a znode's dataVersion, which
//     begins anew with each znode of the same name. Leave, Remove, and Put and Delete on
//     condition of a version or a member, read first and act then. They do not notice
//     somebody who, between the two, deletes the znode and makes another like it. Leave of a
//     leader does not notice it while the notice is on its way.
//   - Foreign candidates see the position of a pinned member behind its value.
//   - A foreign client may choose the number of a member itself. If it deletes that member and
//     makes another with the same name, WatchLine may take it for the first.
//   - A record that a foreign client has created and never written since, under a name that ends in
//     ten digits, is taken for an item: List leaves it out.
//   - Servers before 3.9 do not say how far the log had come when they give notice.
//     Suppose that a session is told of a departure, loses its connection, and gets one
//     to a server that is behind. It then finds that member in front again until the
//     server has caught up, and waits for it again. Nobody leads by that.
//   - Members without a number of ten digits are not seen. A line with numbers that
//     are negative, too long or double is refused with [backend.ErrLine], and so is
//     a join for which no number is free, as after 2,147,483,647 joins. The counter
//     begins anew when the empty znode E is deleted; positions do not.
//   - A LeaderElectionSupport that looks at the line while somebody leaves it fails for
//     good, and its member stays: whoever stands behind it waits. That is its own defect,
//     and no other candidate can prevent it.
package zookeeper
