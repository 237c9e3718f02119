// Package spread is for more elections than one cluster carries: each lives on one of several
// clusters, by its name.
//
//	clusters := spread.New(spread.File("/etc/app/clusters.json"), nil)
//	defer clusters.Close()
//	err := elect.New(clusters.For("reports"), "reports", nil).Run(ctx, work)
//
// or, by URL, spread:/etc/app/clusters.json, and with the list itself in the URL
// spread:?to=east=etcd://e1,e2,e3&to=west=zookeeper://w1,w2,w3. A program that takes any URL calls
// [For] with the backend that it has opened.
//
// # Why this is a map from names to backends
//
// A [backend.Session] has one deadline and one end. One session for the elections of several clusters
// would end with the first of them, and the outage of one cluster would be that of all elections. So
// this package has no session of its own: [Backend.For] returns the backend of one election, whose
// sessions are those of the cluster that it lives on. All elections of a process on one cluster share
// one session, as they do without this package.
//
// # Where an election lives
//
// The clusters of the first list that a process used are the founders. They never change. The name
// of an election falls to one founder, by rendezvous hashing. That founder keeps the election's home,
// in the record NAME.spread. Whoever uses an election first chooses the cluster of its own list that
// the name falls to, and writes that on condition that there is no such record. As long as there are
// only the founders, an election lives on the founder that keeps its home, so it needs no other
// cluster.
//
// Adding a cluster to the list moves no election. It gets its share of the elections that are used for
// the first time from then on. [Backend.Where] says of any other where it lives, and where its name
// falls; to move it is up to the operator: [Backend.Move].
//
// A cluster on which no election lives may be taken off the list, if it is no founder. A founder stays.
// Its servers may be replaced, and its URL may change; elections may be moved away from it.
//
// # Why one leads
//
//  1. Each election has one keeper. Which one follows from its name and the founders, and all
//     processes know the same founders: each cluster says in the record .spread which one it is, who
//     the founders are, and an ID. A list is founded in two rounds. First all founders get this
//     record, each on condition that it has none; then it is made complete. Nobody uses an election
//     before it has seen one that is complete. Of two lists with a cluster in common, that cluster
//     has the record of one, so at most one becomes complete. A process whose list has other clusters
//     under these names, or lacks a founder, is refused, since it asks each cluster which one it is
//     before it uses it.
//  2. Each election has one home, as its keeper's record is written once, on condition that it is not
//     there. Two processes with different lists choose different clusters; the second one finds the
//     choice of the first, and where it does not know that cluster it says so.
//  3. A process leads only on a cluster that the record has named as the home. A record that it has
//     remembered, or has read from a server that lags behind, may be old. The record changes only in
//     a move, and after a move the election is sealed on the old cluster: [backend.ErrSealed]. Nobody
//     leads behind a seal. Who meets one asks the keeper again.
//  4. While an election moves, who joins knows both clusters and stands on both, or knows the old one
//     alone: these are the candidates of package migrate before the restart and after it, and which of
//     them leads, with growing tokens, is argued there. The gate on the new cluster stands before the
//     keeper's record names that cluster, and the record calls it the home only when the seal on the
//     old one has been seen.
//
// So the list that a process has decides what it can reach, and never who leads.
//
// # A move
//
//  1. [Backend.Move] has package migrate put a gate on the new cluster, and writes into the keeper's
//     record that the election is being moved. It says the same in the record .spread-moves, which all
//     processes follow, on each founder one. Whoever waits in line then joins again, on both clusters:
//     nobody is restarted, and the URL stays the same.
//  2. The leader is not disturbed as long as it takes them to do this. It is then asked to resign,
//     unless it knows both clusters already, and one that knows both leads.
//  3. That one seals the election on the old cluster and leads on by the new one alone, in the same
//     term.
//  4. [Backend.Finish] makes the new cluster the home. Until step 3 [Backend.Abort] takes all back.
//
// Every step can be taken again, by anybody, after a crash at any point.
//
// # What an outage does
//
// While a cluster is out, its elections have no leader, as without this package. The others go on, and
// a process can start meanwhile. Not possible without the keeper of an election are its first use, its
// move, and, if it lives on another cluster than its keeper, its use by a process that starts.
//
// # What it costs
//
// A process reads one record of each cluster that it uses, once, and one of each election. It has a
// session with each cluster that it uses, and one watch on each founder. An election at rest costs
// what it costs without this package. While elections move from one cluster to another, a process has
// one more session with each of the two, until it ends. The record of an election names the addresses; eight pairs of them
// for the same two clusters are believed of one election, as whoever may write its record may write any number.
//
// # What it does not promise
//
// An election that was in use on one cluster before must be put there, by [Backend.Put], before anybody
// uses it through this package. A client of one cluster alone that joins an election that lives on
// another is stopped by nothing. Two lists that were both used cannot become one: an election that is in
// use in both has a leader in each. A process that sees the records of both refuses.
//
// A founder that is restored from a backup has lost the homes that were written since. If the list has
// grown since, stop all processes before, and put those elections where they were.
//
// The backend of an election has its line and its records, and no shared members and no items, as
// package migrate cannot move these. A group, a queue or a shared lock stays on one cluster: open that
// by its own URL.
package spread
