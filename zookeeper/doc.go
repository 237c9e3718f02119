// Package zookeeper is the driver for ZooKeeper, on the client library
// github.com/go-zookeeper/zk. Import it for its side effect to open backends by
// URL, or call [New]. It is tested with servers 3.8.0 and 3.9.3.
//
// # The recipe
//
// Election E is the persistent znode E; a candidate is an ephemeral sequential znode
// E/n_0000000133 whose data is its value; the number that the server appends orders
// the line. A candidate lists the children, and leads if its number is the smallest.
// Otherwise it watches the member just in front, and nothing else, and lists anew
// when that has gone. Participants of other libraries may stand in the same line:
// ZooKeeper's LeaderElectionSupport, Curator's LeaderLatch or LeaderSelector, kazoo's
// Election. We read the names of all of them; what they need ours to be is a [Format].
//
// A member's position is its znode's czxid. The election's own record is the data of
// E; any other record is the data of a persistent znode, and its version the mzxid.
// A znode without data is no record.
//
// # Sessions
//
// Each session has a zk.Conn and a TCP connection of its own. That library goes on
// under a new session by itself when one has expired, with whatever was queued. It
// does not get there: its connections are wrapped (internal/wire), and the wrapper lets a
// connection carry one session only. A session ends when a server says so, when the
// deadline passes while a member leads, and when no server was heard from for two
// session times. Until then waiters keep their session and their place.
//
// # The deadline
//
// A server that is cut off from the ensemble's leader answers pings and reads for
// syncLimit ticks, while the leader ends the session. An answered ping therefore
// proves nothing; an acknowledged quorum write does. The heartbeat is
// multi{check own member}, which changes nothing and wakes nobody. It is sent six
// times in a session time as long as a member of the session stands first or
// second, and the deadline counts from when a request was sent that had been
// answered some time before the newest acknowledged write was sent (internal/wire, touches.go).
//
// # Ambiguity
//
// When the answer to a create is lost, the session finds out on its next connection
// whether there is a member, after a quorum write of its own, by the znode's owner:
// not all foreign participants take names with a mark of their creator, and where a
// name has one it is for them. When that cannot be found out, the session is ended, and with it the member.
//
// # Security
//
// TLS is done under the client library, and so is authentication: the wrapper shows
// the credentials on each new connection before the library may send anything. What
// a backend creates can be changed by those whom its [ACL] names, and read by
// everybody. ZooKeeper asks for the right to delete a member on the znode above it:
// what protects members is the ACL of the election's znode, which is that of whoever
// made it. docs/zookeeper.md has the rights that each operation needs.
//
// # What it does not promise
//
//   - A leader that is not connected to ZooKeeper learns nothing of an operator who
//     deletes its member, or ends its session, before its deadline.
//   - ZooKeeper deletes and writes on condition of a znode's dataVersion only, which
//     begins anew with each znode of the same name. Leave, Delete, and Put on a
//     version or a member read first and act then. Somebody who between the two
//     deletes the znode and makes another like it is not noticed.
//   - A pinned member is a new znode under the same name. Foreign participants see
//     its former position appended to its data.
//   - Servers that grant one session different timeouts (minSessionTimeout,
//     maxSessionTimeout) must not be mixed in one ensemble: which of them counts is
//     known only when a connection is established.
//   - Servers before 3.9 do not say how far the log had come when they give notice. A
//     session that is told of a departure, loses its connection, and gets one to a
//     server that is behind, finds that member in front again until the server has
//     caught up. It waits for it again; nobody leads by that.
//   - Members without a number of ten digits are not seen. A line with numbers that
//     are negative, too long or double is refused with [backend.ErrLine], and so is
//     a join for which no number is free; that is what comes after 2,147,483,647
//     joins. The counter begins anew when the empty znode E is deleted.
//   - Of the authentication schemes there is digest, and x509 by a certificate of the
//     client; there is no SASL.
//   - A LeaderElectionSupport that is looking at the line while somebody leaves it
//     fails for good and keeps its place, so that whoever stands behind it waits. That
//     is its own defect, and no participant can spare it that by itself.
package zookeeper
