// Package postgres is a driver for PostgreSQL 13 and later. Applications open it by URL, such as
// postgres://h1:5432,h2:5432/database?user=app ([Open]), or with a configuration of pgconn ([New]).
//
// What only this coordinator can: a transaction of the user, in the same database, is refused at its commit if its
// leader does not lead any more, whatever clocks do; see [Guard].
//
// # Objects
//
// Everything is in one schema (schema.sql): sessions, members and records are rows. Each method of a session is one function there,
// in a transaction of its own. Whoever uses them has the right to call the functions, and none on the tables ([Grants]). NOTIFY
// wakes those who wait, who then look at the rows. Nothing rests on it, and nothing on a clock of the server.
//
// Position (L1): a counter, whose row stays locked until commit, so that numbers grow in the order of commits. A sequence
// would not do: its numbers become visible in another order, and a failover may repeat them. The counter is never behind the
// server's clock in microseconds. So it does not fall either after a failover that has lost some. There are 64 of them, divided
// among the names of lines, so that the lines of a database do not wait for one another.
//
// Join (L1) has a number of its session. After a lost answer the session burns the number: from then on no request with it takes
// effect, and the answer says whether one has.
//
// Freshness (L2): there is one primary, and it answers all. That nobody stands in front is told together with a heartbeat where commits
// wait for a standby: a primary that was deposed cannot commit it.
//
// Waiting (L3): each session has one connection, which listens. It also has the heartbeats and, if it is idle, most other requests; a process needs
// no second one while it is at rest. Notices come before the answer to a later heartbeat on the connection, so an answered heartbeat
// proves that none is missing. When the connection is made anew, all who wait look.
//
// The server signals every connection of the database that listens at each commit that notifies. So a session in which all that wait are far from the head of their
// lines does not listen; see far.go. It then looks four times in a TTL, or twice if more than sixty stand in front, and sends about two
// heartbeats in a TTL. Far is who has more than sixteen in front, and four times as many as have left between two looks. So if
// more than that leave of a sudden, the next one may know by its next look only.
//
// Guarded writes (G3) lock the row of the member, so that it cannot go before they are committed.
//
// # Versions
//
// The schema has a format, which is a number, and so has each version of this package: it needs a schema of that format or a newer one. A newer
// schema says which is the oldest format of processes that can use it. Whoever opens a session says its format, and is refused with
// [backend.ErrInvalid] if the two do not fit. [Schema] and [EnsureSchema] bring an older schema to the newer format while
// processes go on; a session never does.
//
// # The deadline
//
// PostgreSQL ends nothing by time. So sessions observe each other (L5, L6):
//
//  1. A heartbeat is a transaction that raises the number in the row of its session. If it was sent at s and is
//     acknowledged, it was committed at s or later, in one life of one server: from one start of it to the next.
//  2. Whoever observes the session sees the number after that commit. It counts from o, when it had the answer, and so o ≥ s, by its
//     own clock, which counts suspension.
//  3. It asks for the end of the session at o + TTL + TTL/20 or later. The twentieth is for clocks of different rates. The server deletes the
//     row if number and life are still the same. A heartbeat that comes meanwhile locks the same row: one of the two is first,
//     and the other finds that the number is another, or that there is no row.
//  4. So nobody ends the session before s + TTL, where s belongs to its newest heartbeat that was acknowledged. That is its deadline.
//  5. In another life each observation begins anew. So it does not matter which numbers a crash has lost.
//  6. A failover may lose rows. Each session has the era in which it was opened: the system identifier and the timeline of
//     the server. In another one all its requests are refused, and it ends. Nobody is told that it is first in a new era before somebody
//     has observed it for the longest session time that the schema has seen, and a twentieth more. By then the deadline of each session that was lost has
//     passed, if the old server has acknowledged none of its heartbeats since the new one began.
//  7. An operator who deletes a session or a member does not wait for its deadline, as on every coordinator.
//
// Each session observes the next sixteen in a ring, and eight times as many while most of them are silent, whether it stands in a line
// or not. It sees them with each of its heartbeats, four in a TTL; half as many if it is far from the head, as long as none is silent. If all processes crash at once, a newcomer ends
// their sessions after a TTL of its own.
//
// # What rests on what
//
// Step 1 needs a server that loses nothing that it has acknowledged: fsync must be on ([Open] of a session fails otherwise), and the functions
// turn synchronous_commit on. A commit that the server gives up to confirm, because somebody cancels its wait for a standby, is told as done
// with a warning: the driver takes each warning for a lost answer, and never asks a server to cancel anything.
//
// The last condition of step 6 is the operator's. If the old primary is dead or shut off when the standby takes over, it
// holds. If commits wait for a standby (synchronous_standby_names), it holds in any case: the old one acknowledges
// nothing that the new one has not. If they do not, and the old primary serves on, two lead as long as it does: each has its
// own rows, and no client can see it. A session warns in the log where a standby follows and commits do not wait for it. What
// an asynchronous failover loses of records is lost, a raised fence among them.
//
// # Connections
//
// An application that has a pool of pgx gives its configuration to New, &pool.Config().ConnConfig.Config, and not the pool. Requests on connections of the pool could
// not keep the promises above: the driver would not see the server's warnings there, and pgx asks the server to cancel what is under way when a context ends. And it would save
// little: one connection has to listen in any case, and at rest there is no other.
//
// # Poolers
//
// PgBouncer in transaction mode takes LISTEN, and no notice ever arrives. The driver notices it by the process that has
// answered, which is not the one that it is connected to, and then looks again and again: forty times in a TTL, and four times where somebody else
// stands between. There it prepares no statements, and it sends no parameters of its own at the start of a connection. The functions
// set what they need themselves.
//
// # What it does not promise
//
// Handing over costs more the more connections listen in a database, as PostgreSQL signals each of them at each commit that
// notifies; docs/postgres.md has figures. Whoever may call the functions may end each session of the schema: the IDs of
// sessions are no secrets. A database that was restored from a backup is told by [backend.ErrReset] to those that were there before alone;
// raise the fence, as docs/deploying.md says.
package postgres
