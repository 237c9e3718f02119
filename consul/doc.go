// Package consul elects leaders on Consul. It is a driver for package backend:
//
//	b, err := consul.New(nil, nil) // the agent that Consul's environment variables name
//	b, err := succession.Connect(ctx, "consul://127.0.0.1:8500/app?ttl=15s")
//
// [Open] lists the parameters of the URL. Talk to the agent on the same machine.
//
// A session of Consul is what Consul itself calls a session; a session of this package has
// one of them at a time.
//
// # Members and records
//
// A member of election E is the key E/<id>, below the prefix. It is locked by the session
// of Consul, and created in the transaction that locks it. <id> is the first session of
// Consul that our session has had. The second member of a session, in whatever line, is
// E/<id>-2, and so on; "-shared" follows in the name of a shared member. A key is never used twice.
// When the session of Consul ends, its behaviour "delete" removes the key. There is no lock-delay,
// because nobody uses the key again.
//
// The position of a member is the key's CreateIndex, which comes from Consul's log. A
// pinned member is a key in the line that no session has locked. So is an item, which is
// named like a member of the session that has appended it.
//
// In a line of five or more, a leader that leaves writes a mark beside the header: the key "E~",
// whose flags say up to which position nobody stands. Its session has locked the key, which goes
// with that session. Any other key of that name is ignored.
//
// A record is the key of its name, and its version is the ModifyIndex. The header of
// election E is the key E. A condition is checked in the transaction that writes, and no key ever
// has the same index again, also if it is deleted and made anew, because it is an index of Consul's
// log. If a restored snapshot sets the log back, sessions fail with [backend.ErrReset].
//
// # How the laws are kept
//
//   - L1: Join creates the key on condition that it does not exist. If the answer is
//     lost, the same transaction is sent again; whichever of the two has made the key,
//     the key is ours. A request whose caller has gone may still arrive. So the session looks for
//     keys of such requests, and removes them, until Consul has ended the session of Consul that they
//     name: then nothing can create them.
//   - L2: Ahead reads the line and the header in one transaction, which is consistent: the whole
//     line at first, and later only the member itself and those that stood just in front of it,
//     because nobody else can stand there; see front.go.
//   - L3: A waiter has one blocking query on the key of the member just in front, so one
//     departure wakes one waiter. The query has the default consistency. Its answer counts only if
//     it proves by itself that the key has gone: the key is missing in a state later than its
//     creation. Otherwise Gone reads the key again, consistently. For all calls of WatchPlace the
//     session does that together, once in a TTL. A waiter behind a pinned member has a second
//     query, on the header. WatchLine has a query on the folder of its line, and then reads that
//     consistently.
//   - L4: Leave deletes the key on condition that it is still the same entry. Put and
//     Delete under a member ([backend.If]) check the same in the transaction that writes.
//   - L5: A session ends when it is closed, when its deadline passes, when Consul no longer knows
//     its session. It also ends when Consul has denied it for a TTL to watch a member of its own, or
//     to remove one that no caller knows of.
//   - L6: See below.
//   - L7: No election or record can have a name whose last part looks like the name of a
//     member.
//   - L8: A key keeps its value when it is pinned or changes its session.
//   - L10: Append locks and unlocks a new key in one transaction, so it does nothing once its
//     session of Consul has ended. Remove deletes a key that no session has locked, on the
//     same condition as a Put under a member. Claim joins, and then reads the item and the
//     other claims at one instant. Free remembers the first of many items, as Head does.
//
// # The deadline
//
// A session is renewed every third of its TTL, on a connection of its own. Its deadline
// lies a TTL after the newest renewal that counts was sent. A renewal counts if its answer comes
// before the present deadline, and only if Consul still has the leader under which the session of
// Consul was created. When the deadline passes, the session has ended, also if its members only
// wait. No later answer changes that.
//
// Consul counts twice the TTL from when a renewal arrives. So a leader that is cut off
// stops about a TTL before anybody can follow it. After a crash, the next leader follows up to
// twice the TTL later: 30 s with the default of 15 s. The least TTL that Consul grants with default
// settings is 10 s. A resignation, an orderly Close and an operator's deletion hand over within
// milliseconds.
//
// When Consul has changed its leader, the session takes a fresh session of Consul and
// moves its members to it; they keep their positions. Otherwise a former leader that was only
// paused, and leads again, would end a session that its successor has renewed.
//
// Consul ends a session together with the catalog node that it is bound to, whatever the
// TTL is. It removes nodes by itself: the node of a failed server after some seconds, and the node
// of an agent that leaves at once. So a session that is bound to an agent's node can end long
// before the deadline of its holder. Our sessions are bound to a node that no agent runs,
// "succession" ([Options].Node), which Consul has no reason to remove. It shows in the catalog;
// leave it there.
//
// # What it needs
//
// Consul 1.14 or later. With ACLs, a candidate's token needs what [Rights] says. A token that may
// make sessions on a node may end all sessions of that node, so candidates that do not trust each
// other need nodes of their own.
//
// A candidate whose token hides some members from it would lead before those. So if Consul says
// that it has left something out of an answer, the call fails with [backend.ErrDenied].
// Consul does not say so to a request that has no token, neither its own nor the agent's. So if the
// anonymous token has rights to a line, it must have them to all of the line.
//
// # What it does not promise
//
// If an operator deletes the key or the session of a leader that is cut off, or
// deregisters the catalog node, that leader believes in its term until its deadline,
// while another leads: guard writes with the token.
//
// The deadline assumes that clocks run at about the same rate: a whole TTL is left for
// their drift. docs/safety.md has the argument in steps, and where it ends.
//
// An election lives in one datacenter. Consul replicates neither keys nor sessions to
// others, nor to peers.
//
// Consul works on a blocking query until its time is over, also if the client has gone. So up to a
// minute after Close, queries hold connections at the agent, which grants 200 to an address
// (limits.http_max_conns_per_client). So a backend has 96 queries at most. Waiters beyond that
// notice a change within about a second; see docs/consul.md.
//
// # Lost data
//
// Positions are safe as long as Consul's log goes forward, and its keys with it. The log
// of a cluster that was rebuilt begins again. If a snapshot is restored into a running
// cluster, the log goes on, but the keys go back: members that have left stand again, and a raised
// fence is low again.
//
// A backend that has seen a later state ends its session, and fails with
// [backend.ErrReset] from then on. While it waits for something, it notices a restored
// snapshot if nobody has written any key since. Otherwise it notices it by the header of an
// election that was changed since the snapshot. It removes its own old members that stand again in
// a line in which it stands.
//
// A process that has just started has seen nothing before, and a process that stands in no line
// notices nothing. After a restore, first raise the fence of each election, and then restart the
// processes.
package consul
