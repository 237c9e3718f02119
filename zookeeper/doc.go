// Package zookeeper is the driver for ZooKeeper. It uses the client library
// github.com/go-zookeeper/zk, and is tested with servers 3.8.0 and 3.9.3. Import it for
// its side effect to open backends by URL, or call [New]:
//
//	b, err := succession.Connect(ctx, "zookeeper://h1:2181,h2:2181,h3:2181/app?ttl=10s")
//
// Package backend has the words and the laws (L1 to L10) that are named here.
//
// # Members and records
//
// Election E is the persistent znode E. A member is an ephemeral sequential znode under
// it, such as E/n_0000000133, whose data is the member's value. The number that the server
// appends to the name orders the line. A member's position is the czxid of its znode. The name
// of a shared member begins with read-, as in the documented recipe for shared locks, or with what
// the Format says.
//
// A pinned member is a persistent znode. ZooKeeper cannot change an ephemeral znode into a
// persistent one, so Pin deletes it and creates another under the same name, in one
// transaction. The new znode has another czxid, so the member's position is appended to its data.
//
// An item (L10) is a persistent sequential znode, with a name like those of members, whose data is
// its value. A claim is a member whose name begins with that of its item:
// n_0000000007-read-0000000003 is for the item n_0000000007. So lists of names show which item is
// the first that nobody claims.
//
// The session that has made the znode E deletes it again if no member has stood there for a session
// time and it has no header; see sweep.go.
//
// The header of E is the data of the znode E. Any other record is the data of a persistent
// znode. The version of a record is the mzxid. A znode without data is no record. If records of a
// folder are written on condition or deleted, the folder has one more znode without data,
// ~deletions.
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
// is either visible or refused. It looks for a znode whose owner is this session. It cannot use a
// mark in the name, because LeaderElectionSupport accepts none; names have the marks of other
// libraries only for those libraries. Joins run at the same time; a join that looks for its member keeps
// the others of that line out. So each member of the session that it does not know then is one whose create
// was not answered. If the session cannot find out, it ends, and the member goes with it.
//
// Reading (L2): a session has one TCP connection at a time, and only to servers that have
// come as far as the session has seen. The list and the header are read at the same time.
// If the header is older than the list, it is read again. A header with a watch that has not
// fired is not read.
//
// Waiting (L3): when a connection breaks, every watch of the session gets an event, and every
// waiter reads again on the next connection. So WatchPlace never looks again by the clock. The
// first eight members of a line watch the header too. So does a member behind a pinned one, or
// behind one that may be foreign: such a member stays when the election moves, and nobody else
// would pass on the word. The random part of our names begins with 5ecc5ecc. A name n_ without a
// random part counts as ours, unless [Options] As or NamePrefix is given: then all that wait behind
// such names watch the header, and each of them reads it after each write. All that wait for one
// znode share one watch. Only WatchLine watches the list of children. If it knows a name already,
// it does not read the member again, because ZooKeeper uses each number once as long as the znode E
// stands.
//
// Leaving (L4): ZooKeeper deletes by name, so the session first reads the znode and compares the
// position. It need not read if it has a watch on the znode that has not fired. Remove deletes the
// item in one transaction with the check of the other member. It reads both first, but not one on
// which it has a watch that has not fired.
//
// # Compare and set
//
// A version is an mzxid, which no two writes share, and ZooKeeper cannot check it: a transaction
// can check only that a znode has a certain dataVersion. The dataVersion grows with each write as
// long as the znode stands, and begins anew with the next znode of that name. So the driver must
// also check that it is still the same znode. There are these ways:
//
//   - Never to delete a znode, but to empty it. Its dataVersion then goes on for ever. But folders
//     would grow with each name that was ever used, such as the tasks of a pool, and List reads
//     every znode.
//   - To give each incarnation a name that never comes again. Foreign clients would not find the record.
//   - To count the deletions of a folder in a znode that is never deleted. That is what this driver does.
//
// The znode has the name ~deletions, which no record can have, and its dataVersion is the count.
// The transaction that deletes a record also writes ~deletions. Put and Delete on condition of a
// version read ~deletions, then the record, and compare the mzxid. Then they send one transaction
// that changes the record at the dataVersion that they have read, and fails if the count is not
// what they have read. If it succeeds, no record of the folder was deleted between the reading of
// the count, which came first, and the write. So the znode is the one that was read, it was not
// written since, and it still had the version. As no count and no dataVersion falls while its znode
// stands, nothing comes back by chance.
//
// If there is no count yet, the transaction makes it, with the same effect: if it can be made,
// nothing has been counted. If the client has no right on ~deletions, a deletion empties the znode
// of the record instead; it does the same if that znode has children. A crash leaves nothing half
// done, because all that belongs together is one transaction. The price is one read more, at the
// same time as that of the record, and a third one if the record is older than the last deletion in
// its folder; a write that meets a deletion of another record is tried again at once. A folder has
// at most one znode more.
//
// What can still break it: other programs, and older versions of this driver, delete znodes and
// count nothing. If a client may make nothing in the folder and there is no count yet, it writes
// without the check, and may miss the very first deletion there; the commands of [Rights] make the
// znode beforehand. The znode by which a member says that it is not ready goes with its session,
// which is not counted; only that session writes it. Pin needs no count, because its line stands as
// long as its member does.
//
// # Fresh reads
//
// A server of an ensemble answers reads from the writes that it has applied. It may lag behind what
// other servers have answered: by some milliseconds, or by syncLimit ticks if it is cut off from
// the leader. A session uses no server that is behind what the session itself has seen, in answers
// or in notices. So there are two kinds of reads.
//
//	asked                               fresh   why
//	record.List, Value.Get, Update      yes     they say what the record is now; Update acts on it
//	group.Group.Members, Owners,        yes     the same; Put looks so before it appends again after a lost answer
//	  queue.Queue.Len, List
//	queue.Queue.TryTake                 yes     only before it says that there is no item: the claim shows whether an item is free
//	task.Standby.Start, Stop, Configure yes     only before they return without a write, because all is as it is to be
//	elect.Election.Leader, Line,        yes     people and programs ask once, and take the answer for the present
//	  History; task.Standby.Status
//	AskToResign, Pause, Resume          yes     an operator who has just seen a leader is told that nobody leads
//	RaiseFence; each step of a migrate  yes     before they say that nothing is to be done, or refuse
//	  and its Status
//	queue.Queue.Put with a Limit        yes     only when the queue was nearly full: others may have confirmed items since
//	the first write of a Value          yes     an election that has just come into being may have the name
//	Ahead, WatchPlace                   no      L2: a member in line has to see its own join and the departure that
//	                                            it was told of, and with that all that came before in the log
//	Term.Get, and what a leader reads   no      it leads since a departure, or has joined, after all that the last one wrote
//	Observe, Follow, WatchLine, Watch   no      a watch follows the read, so the newest state comes in any case
//	Put, Delete, Pin, Remove, and Leave no      they are refused if what they were based on is old; before a refusal they
//	  and Ahead of another's member             read again after a write (sure, in call.go)
//	what a process that moves reads     no      it joins the line first, or writes on condition of what it has read; it asks
//	                                            again, fresh, before it says that it can neither lead nor wait
//
// A fresh read is a Refresh and then the read. Refresh is a quorum write that changes nothing, a
// check that takes the log as heartbeats do. ZooKeeper has the request sync for it, but only the
// leader answers that, without asking the others: a leader that is cut off still answers it for
// syncLimit ticks, while another leader takes writes. On three servers on one machine of two cores,
// a read alone took 0.25 to 0.4 ms, one after a sync 0.9 to 1.2 ms, and one after a check 1.7 ms
// with memory for a disk and 2 to 6 ms with fsync (2026-11-27, medians of 300). If both are sent at
// once on one connection, they take hardly less time than one after the other, and the library does
// not keep their order.
//
// # Sessions
//
// Each session has a zk.Conn of its own (L5). When a session of ZooKeeper has expired, the library
// by itself opens a new one and sends queued requests there. That cannot happen here: package
// internal/wire wraps the library's connections, and lets them carry one session only. If an answer
// is due and nothing has come on a connection for a quarter of the session time, the wrapper breaks
// the connection, and the session goes to the next server. A session ends when a server says so,
// when its deadline passes while one of its members leads, and when it has heard from no server for
// two session times. Until then candidates that wait keep their session and their place.
//
// # The deadline
//
// A server that is cut off from the ensemble's leader answers pings and reads for
// syncLimit ticks, while the leader ends the session. An answered ping therefore proves
// nothing; an acknowledged quorum write does. The heartbeat is a multi that only checks members of
// the session: it changes nothing and wakes nobody. As long as such a member is among the first
// three of its line, a heartbeat goes out six times in a session time. When a write is
// acknowledged, the deadline counts from when an earlier request was sent: the newest request whose
// answer had come at least [Options] Relay before the write was sent (L6). The file touches.go of
// internal/wire has the reasons.
//
// # Security
//
// TLS and authentication are done under the client library: the wrapper shows the
// credentials on each new connection before the library may send anything. The users that its ACL
// names can change what a backend creates, and everybody can read it. ZooKeeper asks for the right
// to delete a member on the znode above it. So the ACL of the election's znode protects members,
// and the client that made that znode has set it. docs/zookeeper.md has the rights that each
// operation needs.
//
// # What it needs
//
//   - A server must report to the ensemble's leader, within [Options] Relay, which
//     sessions it has heard from. The default is long enough unless minSessionTimeout is
//     set below its default of two ticks.
//   - All servers of an ensemble must grant a session the same timeout (minSessionTimeout,
//     maxSessionTimeout), because it is not known before a connection is made which server's
//     settings count.
//   - If the servers have local sessions (localSessionsEnabled), they also need
//     localSessionsUpgradingEnabled: a local session can have no members.
//   - The supported authentication schemes are digest, and x509 by a certificate of the client.
//     SASL is not supported.
//
// # What it does not promise
//
//   - If an operator deletes the member or ends the session of a leader that is not connected to
//     ZooKeeper, the leader learns of it only at its deadline.
//   - Leave and Remove, and Put and Delete on condition of a member, read first and act then, or know from a watch
//     what they would read. If somebody, before the second has arrived, or while the notice is on its way, deletes the
//     whole line and makes another in which a member has the same name, they do not notice it. A
//     record that an operator deletes with other tools is not counted; see "Compare and set".
//   - Leave deletes at once if a watch shows that the member stands. Suppose that an operator
//     removes the member at that moment; that the request is under way for longer than the session
//     time of the session that made the line; that this session sweeps the line meanwhile; and that
//     a new member joins and gets the same number. Leave then removes the new member.
//   - Foreign candidates see the position of a pinned member behind its value.
//   - A foreign client may choose the number of a member itself. If it deletes that member and
//     makes another with the same name, WatchLine may not see the difference.
//   - A record that a foreign client has created and never written since, under a name that ends in
//     ten digits, is taken for an item: List leaves it out.
//   - Servers before 3.9 do not say how far the log had come when they give notice.
//     Suppose that a session is told of a departure, loses its connection, and gets one
//     to a server that is behind. It then finds that member in front again until the server has
//     caught up, and waits for it again. Nobody leads wrongly by that.
//   - Lines does not find an election in a folder if its name ends in ten digits, such as
//     shards/x-0000000001: it takes its znode for a member of a line shards. It passes over znodes
//     that it may not read, because everybody may read what this driver makes.
//   - Members without a number of ten digits are not seen. A line with numbers that
//     are negative, too long or double is refused with [backend.ErrLine], and so is a join when no
//     number is left, after 2,147,483,647 joins. The counter begins anew when the empty znode E is
//     deleted; positions do not.
//   - If a LeaderElectionSupport looks at the line while another member leaves it, it fails for
//     good, and its member stays: the candidates behind it wait. That is a defect of that library,
//     and no other candidate can prevent it.
package zookeeper
