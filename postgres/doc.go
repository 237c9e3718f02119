// Package postgres is a driver for PostgreSQL 13 and later. Applications open it by URL, such as
// postgres://h1:5432,h2:5432/database?user=app ([Open]), or with a configuration of pgconn ([New]).
//
// Only this coordinator can do the following: if a leader does not lead at the commit of a
// transaction of its own in the same database, the commit fails, whatever clocks do; see [Guard].
//
// # Objects
//
// Everything is in one schema (schema.sql): sessions, members and records are rows. Each method of
// a session is one function there, in a transaction of its own. Users have the right to call the
// functions, and no right on the tables ([Grants]). NOTIFY wakes the waiters, which then look at
// the rows. Safety rests neither on NOTIFY nor on a clock of the server.
//
// Position (L1): a counter, whose row stays locked until commit, so that numbers grow in the order
// of commits. A sequence cannot be used: its numbers become visible in another order, and a
// failover may repeat them. The counter is never behind the server's clock in microseconds, so it
// does not fall after a failover that has lost numbers either. There are 64 counters, divided among
// the names of lines, so that joins of different lines wait for each other at most at their commits:
// of the commits that notify, PostgreSQL lets one through at a time, in all databases of the server,
// until it is synced and, if commits wait for a standby, until that has it (PreCommit_Notify in
// async.c). Heartbeats do not notify.
//
// Join (L1) has a number of its session. After a lost answer the session burns the number: from
// then on no request with it takes effect, and the answer says whether one has.
//
// Freshness (L2): there is one primary, and it answers all requests. If commits wait for a standby,
// a member learns that it is first only together with a heartbeat. A deposed primary cannot commit
// that, if it is as "What rests on what" says. It still answers those who only read, in a session that was opened there, as things were when it
// was deposed, until the deadline of that session.
//
// Waiting (L3): each session has one connection, which listens. It also carries the heartbeats and,
// if it is idle, most other requests; a process at rest needs no second one. A request whose answer was lost there is sent again over another:
// it may wait for a lock. Notices come before
// the answer to a later heartbeat on the connection, so an answered heartbeat proves that no notice
// is missing. When the connection is made anew, all waiters look.
//
// At each commit that notifies, the server signals every connection of the database that listens.
// So a session whose waiters are all far from the head of their lines does not listen; see far.go.
// It then looks four times in a TTL, or twice if more than sixty members stand in front, and sends
// about two heartbeats in a TTL. A waiter is far if more than sixteen members stand in front of it,
// and also four times as many as have left between its last two looks. So if more than that leave
// suddenly, the next one may notice only at its next look.
//
// Guarded writes (G3) lock the row of the member, so that it cannot go before they are committed.
//
// # Versions
//
// The schema has a format, which is a number, and so has each version of this package: it needs a
// schema of that format or a newer one. A newer schema says the oldest format of processes that can
// use it. A process that opens a session names its format, and fails with [backend.ErrInvalid] if
// the two do not fit. [Schema] and [EnsureSchema] bring an older schema to the newer format while
// processes go on; a session never does.
//
// # The deadline
//
// PostgreSQL ends nothing by time. So sessions observe each other (L5, L6):
//
//  1. A heartbeat is a transaction that raises the number in the row of its session. If it was sent at s and is
//     acknowledged, it was committed at s or later, in one life of one server: from one start of it to the next.
//  2. An observer of the session sees the number after that commit. It counts from o, when it had
//     the answer, so o ≥ s. It measures by its own clock, which counts suspension.
//  3. It asks for the end of the session at o + TTL + TTL/20 or later. The twentieth is for clocks
//     of different rates. The server deletes the row if number and life are still the same. A
//     heartbeat that comes meanwhile locks the same row: one of the two is first, and the other
//     finds another number, or no row.
//  4. So nobody ends the session before s + TTL, where s belongs to its newest heartbeat that was
//     acknowledged. That is its deadline.
//  5. In another life each observation begins anew, so lost numbers of a crash do not matter.
//  6. A failover may lose rows. Each session has the era in which it was opened: the system
//     identifier and the timeline of the server. In another era all its requests are refused, and
//     it ends; with its deadline, if that era is an earlier timeline, because a primary that was
//     deposed never had its row. No member learns that it is first in a new era before some session has observed that
//     era for the longest session time since the failover before, plus a twentieth. By then the
//     deadline of each lost session has passed, if the old server has acknowledged none of its
//     heartbeats since the new one began.
//  7. As on every coordinator, an operator who deletes a session or a member does not wait for its
//     deadline.
//
// Each session observes the next sixteen sessions in a ring, whether it stands in a line or not, and
// the four that were opened just before it and just after; while most of them are silent, eight
// times as many. The ring is in the order of the IDs, which are random: so sessions of one machine,
// which may crash together, have others next to them there. But where many sessions come and go,
// the next ones in the ring are soon others. Between two sessions in the order in which they were
// opened nobody comes any more: so those that stay soon have neighbours there that stay, too.
//
// A session sees the numbers of the others with each of its heartbeats, four in a TTL. If it is far
// from the head, there are half as many heartbeats, as long as none of the sessions is silent. If all
// processes crash at once, a newcomer ends twenty sessions after a TTL of its own, two hundred after two, and sixteen hundred after three.
//
// # What rests on what
//
// Step 1 needs a server that loses nothing that it has acknowledged: fsync must be on ([Open] of a
// session fails otherwise), and the functions turn synchronous_commit on, also at the commit of a
// guarded transaction. If somebody cancels the wait of a commit for a standby, the server reports
// the commit as done, with a warning. So the driver treats each warning as a lost answer, and never
// asks a server to cancel anything.
//
// The last condition of step 6 is the operator's. If the old primary is dead or shut off when the
// standby takes over, it holds. It also holds if the old primary can commit nothing without that
// standby: commits wait for it (synchronous_standby_names), and no other standby can confirm them in
// its place. Otherwise, if the old primary goes on serving, two lead for as long: each server has
// its own rows, and no client can see that. A session warns in the log if a standby follows and
// commits wait for none, and also, where the owner of the schema may see it, if more standbys can
// confirm commits than these wait for.
//
// Records that an asynchronous failover loses are lost, also a raised fence.
//
// # Connections
//
// An application that has a pool of pgx gives its configuration to New,
// &pool.Config().ConnConfig.Config, and not the pool. Requests on connections of the pool could not
// keep the promises above: the driver would not see the server's warnings there, and when a context
// ends, pgx asks the server to cancel the request. A pool would also save little: one connection
// must listen in any case, and at rest there is no other.
//
// # Poolers
//
// PgBouncer in transaction mode accepts LISTEN, but no notice ever arrives. The driver notices
// PgBouncer, in whatever mode, because another process answers than the one that it is connected
// to. A notice to oneself would not show the mode: it arrives in transaction mode, too, if the same
// process happens to have sent it. So behind PgBouncer the driver looks again and again, in session
// mode too: forty times in a TTL, or four times if the waiter is not next in line, for each member
// that waits or leads, and all on one connection. It prepares no statements there, and sends no
// parameters of its own at the start of a connection. The functions set what they need themselves.
//
// # What it does not promise
//
// A handover costs more if more connections listen in a database, because PostgreSQL signals each
// of them at each commit that notifies; docs/postgres.md has figures. A session belongs to the role
// that has logged in to open it, because its ID is no secret: roles that share a login share their
// sessions. Every [Candidate] may remove pinned members, write all headers and records, and have
// somebody lead too early after a failover.
//
// Most restores from a backup are not told as [backend.ErrReset]. A server that was recovered from
// a base backup is on another timeline, and one that a dump was loaded into may have another system
// identifier, as after a failover: all sessions end, and positions go on, because they are never
// behind the clock. Only where the era is the same, as with a restored disk image or a dump that is
// loaded into the same server, processes that were there before get it. After each restore raise the
// fence, as docs/deploying.md says.
package postgres
