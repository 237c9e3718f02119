// Package consul keeps elections in a Consul cluster, as package backend lays
// down.
//
//	b, err := backend.Open(ctx, "consul://127.0.0.1:8500/app")
//
// See [Open] for what the URL takes, and [New] for a client made in code. Talk to
// the agent on the same machine. Consul 1.14 or later is needed.
//
// # How it works
//
// A member of election E is a key E/<session id>, locked by its session and created
// in the transaction that locks it. It is named after the first session of Consul that
// a session has had. Its position is the key's CreateIndex, which comes from Consul's
// log and is also what fences: reading the line sorts by it. When the session ends, its
// behaviour "delete" removes the key; it has no lock-delay, as no key is used twice.
// Whoever waits has one blocking query on the key of the member just in front, so that
// one exit wakes one. The election's record is the key E.
//
// Reads that decide are consistent and in one snapshot: the line, and the record,
// in one transaction. A blocking query is asked with the default consistency, and
// its answer counts only for what it proves by itself: that a key is missing in a
// state later than its creation.
//
// Writes under a member ([backend.If]) check, in the same transaction, that the
// member's key is still the same entry. A pinned member is a key in the line
// without a session.
//
// # Sessions
//
// A session is renewed every third of its TTL, on a connection of its own. Its
// deadline is a TTL after a renewal was sent; past it, the session is over here,
// whatever is answered later, and also for a member that only waits. Consul counts
// twice the TTL from the renewal's arrival. So a holder that is cut off stops about
// a TTL before anybody can follow it, and somebody follows one that crashed up to
// twice the TTL later: with the default of 15 s, in 30 s. The least TTL that a
// Consul with default settings grants is 10 s. A resignation, an orderly Close and
// an operator's deletion hand over within milliseconds.
//
// When Consul has changed its leader, a fresh session takes the members over, in place:
// the leader before, if it merely stood still and leads again, would otherwise end what
// its successor had renewed.
//
// Consul ends a session together with the catalog node that it is bound to, whatever
// its TTL, and it removes nodes by itself: that of a failed server after some
// seconds, that of an agent that leaves at once. A session of an agent's node can
// therefore end long before its holder's deadline. Sessions of this package are
// bound to a node that no agent runs, "succession" ([Options].Node), which Consul
// has no reason to remove. It shows in the catalog; leave it there.
//
// # Rights
//
// With ACLs a token needs, for the prefix "app":
//
//	key_prefix "app/"    { policy = "write" }
//	session "succession" { policy = "write" }
//	node "succession"    { policy = "write" }  # only to register the node
//
// A token that may see only some members would let its holder lead before those that
// it does not see. Where Consul says that it has held something back, calls fail
// with [backend.ErrDenied].
//
// # Lost data
//
// Positions are safe for as long as Consul's log goes forward. A cluster that was
// rebuilt has an earlier index, or its keys have, where a snapshot was restored into a
// cluster that runs: members that have left stand again, and a fence that was raised
// is as low as before. A backend that has seen a later one ends its session, and
// fails with [backend.ErrReset] from then on. It notices where it waits for something,
// if nobody has written any key since the restore, and otherwise by an election's
// record that was changed since the snapshot; it removes those of its own members that
// stand again in a line that it stands in. A process that has just started has seen
// nothing, and one that stands nowhere notices nothing. After a restore, restart the
// processes, and raise the fence of each election first.
//
// # What it does not promise
//
// A leader that is cut off and whose session or key an operator deletes, or whose
// catalog node somebody deregisters, believes in its term until its deadline, while
// another leads: guard writes with the token. An election lives in one datacenter;
// Consul replicates neither keys nor sessions to others, nor to peers.
//
// Consul works on a blocking query until its time is over, also when nobody waits for
// the answer any more: up to a minute after Close, queries hold connections at the
// agent, of which it grants 200 to an address (limits.http_max_conns_per_client).
package consul
