// Package spread is for more elections than one cluster can carry: each lives on one of several
// clusters, chosen by its name.
//
//	clusters := spread.New(spread.File("/etc/app/clusters.json"), nil)
//	defer clusters.Close()
//	err := elect.New(clusters.For("reports"), "reports", nil).Run(ctx, work)
//
// or, by URL, spread:/etc/app/clusters.json, or with the list in the URL
// spread:?to=east=etcd://e1,e2,e3&to=west=zookeeper://w1,w2,w3. A program that takes any URL calls
// [backend.For] with the backend that it has opened.
//
// # Why this is a map from names to backends
//
// A [backend.Session] has one deadline and one end. One session for the elections of several
// clusters would end with the first cluster that fails, and so the outage of one cluster would be
// an outage of all elections. So this package has no session of its own: [Backend.For] returns the
// backend of one election, whose sessions are those of the cluster that it lives on. All elections
// of a process on one cluster share one session, as they do without this package.
//
// # Where an election lives
//
// The clusters of the first list that a process used are the founders. They never change. The name
// of an election falls to one founder, by rendezvous hashing. That founder keeps the election's home,
// in the record NAME.spread. The first process that joins an election, or writes by it, chooses the cluster
// of its own list that the name falls to, and writes that record on condition that there is none. Who only
// looks writes nothing, and sees the cluster that the name falls to. As long as
// there are only the founders, an election lives on the founder that keeps its home, so it needs no
// other cluster.
//
// If you add a cluster to the list, no election moves. The cluster gets its share of the elections
// that are used for the first time from then on. [Backend.Where] says where any other election
// lives, and to which cluster its name falls; [Backend.Move] moves it there if an operator wants
// that.
//
// A cluster on which no election lives may be taken off the list, if it is no founder. A founder stays.
// Its servers may be replaced, and its URL may change; elections may be moved away from it.
//
// # Why one leads
//
//  1. Each election has one keeper. Which one follows from its name and the founders, and all
//     processes know the same founders: each cluster says in the record .spread which one it is,
//     which clusters are the founders, and an ID. A list is founded in two rounds. First all
//     founders get this record, each on condition that it has none; then it is marked complete, by
//     whoever next uses the founder if the first process does not come to that. A
//     process uses no election before it has seen a complete record. If two lists have a cluster in
//     common, that cluster has the record of only one list, so at most one becomes complete. Before
//     a process uses a cluster, it asks which one that is. So it fails if its list has other
//     clusters under these names, or lacks a founder.
//  2. Each election has one home, because its keeper's record is written once, on condition that it
//     is not there. If two processes with different lists choose different clusters, the second one
//     finds the choice of the first; if it does not know that cluster, it fails and says so.
//  3. A process leads only on a cluster that the record has named as the home. A remembered record,
//     or one from a server that lags behind, may be old. But the record changes only in a move, and
//     after a move the election is sealed on the old cluster: [backend.ErrSealed]. Nobody leads
//     behind a seal, and a process that meets one asks the keeper again. So does one that may have missed a
//     move, before it opens the next session: who only reads records meets no seal.
//  4. While an election moves, a candidate knows both clusters and stands on both, or knows the old
//     one alone. Package migrate has the same two kinds of candidates, after the restart and before
//     it; it explains which of them leads, and why tokens grow. The gate on the new cluster stands
//     before the keeper's record sends candidates there, and the record calls it the home only when the
//     seal on the old one has been seen.
//
// So the list that a process has decides what it can reach, and never who leads.
//
// # A move
//
//  1. [Backend.Move] writes into the keeper's record to which cluster the election is about to move,
//     has package migrate put a gate there, and then writes that the election is being moved. It also
//     writes that into the keeper's record .spread-moves; all processes follow this record of each
//     founder. Candidates that wait in line then join again, on both clusters: nobody is restarted,
//     and the URL stays the same.
//  2. The leader is not disturbed meanwhile. Then it is asked to resign, unless it knows both
//     clusters already, and a candidate that knows both leads.
//  3. This leader seals the election on the old cluster and leads on by the new one alone, in the
//     same term.
//  4. [Backend.Finish] makes the new cluster the home. Until step 3, [Backend.Abort] undoes all of
//     it.
//
// Every step can be taken again, by anybody, after a crash at any point.
//
// Records that leaders write through their terms move with the election, also those that they wrote
// before the move: before a leader writes such a record for the first time, its process notes the
// record on the cluster, as package migrate does, for at most 1000 records of an election.
//
// # What an outage does
//
// While a cluster is out, its elections have no leader, as without this package. The others go on,
// and a process can start meanwhile. Without its keeper, an election cannot be used for the first
// time, and cannot be moved; if it lives on another cluster than its keeper, a process that starts
// cannot use it.
//
// If a cluster is lost for good, put an empty coordinator in its place, under its URL. If the cluster was a founder, as all are as
// long as the list has not grown, call [Backend.Replace] first of all. That says what to do about the elections whose homes are lost
// with it. It needs one other founder. Until then nobody can use the empty coordinator, and a move from it or to it can neither be
// ended nor taken back.
//
//   - If the old cluster of a move is lost after the cutover, [Backend.Finish] cannot see that nobody stands there. Call it again
//     with the empty one in place. That also does before the cutover, with the fence raised on both, as docs/migration.md says.
//   - If the new cluster is lost before the cutover, call [Backend.Abort].
//   - If the home of the moving election is lost, call [Backend.Put] for the new cluster after the cutover, and for the old one
//     before it; then [Backend.Move] goes on.
//
// # What it costs
//
// A process reads one record of each cluster that it uses, once, and one of each election, this one
// again at the next use after any election with the same keeper has begun or ended a move. Who looks at
// an election without a home reads for it each time; an observer does so once in a session time or two. A process has a
// session with each cluster that it uses, and one watch on each founder. An election at rest costs
// what it costs without this package. The first write of a record in a term takes a few round trips
// more. While elections move from one cluster to another, a process
// has one more session with each of the two, until the process ends. The record of an election
// names the addresses of the two. A process accepts eight pairs of addresses from the record of one
// election for the same two clusters, because anybody with a right to the record could write any
// number of them.
//
// # What it does not promise
//
// If an election was in use on one cluster before, [Backend.Put] must put it there before anybody
// uses it through this package. Nothing stops a client of one cluster alone that joins an election
// which lives on another. Two lists that were both used cannot become one: an election that is in
// use in both has a leader in each. A process that sees the records of both fails.
//
// A founder that is restored from a backup has lost the homes that were written since. If the list
// has grown since the backup, stop all processes before the restore, and put those elections where
// they were.
//
// The backend of an election has its line and its records, but no shared members and no items,
// because package migrate cannot move these. A group, a queue or a shared lock stays on one
// cluster: open that by its own URL.
package spread
