// Package backend is the contract between an election and a coordinator. Package
// elect runs elections over it; the drivers implement it.
//
// Applications need none of it: package succession opens the URL of a coordinator, and package
// elect does the rest. This package is for those who write a driver, a recipe or a tool. What a
// driver tells of itself, so that a URL can name its coordinators, is in package [coordinator];
// what all drivers have in common is in package [kit].
//
// # The idea
//
// A coordinator keeps named lines. A candidate joins at the end of a line and stands
// there as a [Member]. It asks who stands just in front of it, and waits until that
// member has gone. A member with nobody in front of it leads. Members are ephemeral:
// they go when the [Session] that joined them ends.
//
// An election is one loop over this contract:
//
//	j, _ := s.Join(ctx, line, value, "")
//	for {
//		p, _ := s.Ahead(ctx, j.Member)
//		if p.First {
//			return p.Token // it leads
//		}
//		s.Gone(ctx, p.Ahead)
//	}
//
// # Glossary
//
// These words mean the same in the whole project.
//
//	coordinator   what keeps the lines: servers such as those of ZooKeeper or etcd, a
//	              database, or for package local the kernel of one machine
//	driver        a package that implements this contract for one kind of coordinator
//	backend       a process's handle on one coordinator ([Backend])
//	session       what keeps a process's members in line: the coordinator ends it when
//	              it hears no heartbeat for the session time (TTL), and its members go
//	heartbeat     a request that keeps the session alive
//	election      a named line of members
//	candidate     a process that wants to lead
//	member        one entry in a line, made by one Join ([Member])
//	position      the number that orders members; see Position, fence, token below
//	place         where a member stands: first, or behind another ([Place])
//	predecessor   the member just in front
//	leader        the member that is first, and the process that joined it
//	heir          the member just behind the leader
//	term          one leadership without interruption; a term that has ended stays ended
//	token         the number of a term, which grows from term to term. A resource that
//	              refuses smaller tokens than it has seen is fenced
//	fence         the number that is added to positions to make tokens
//	deadline      the instant before which the coordinator cannot have ended the session
//	margin        how long before the deadline a term ends
//	record        a small value with a name and a version ([Record])
//	header        the record of an election: its fence, what else drivers must know of it
//	              apart from its members, and notes of the packages above them ([Header])
//	pinned        said of a member that does not go with its session
//	item          a member that is pinned from the start, such as an item of a queue
//	claim         a shared member that stands for an item of another line; who joined the first
//	              claim for an item has the item
//	gate          a pinned member that was put at the head of a line: everybody behind
//	              it waits
//	seal          the member that a leader has pinned for good, because its election has
//	              moved to another coordinator: nobody leads behind it
//	operator      a person, or a program, that changes a coordinator from outside
//	foreign       said of clients of other libraries that stand in the same line
//	ghost         a member that stands in line and belongs to nobody; no law allows one
//
// # Laws
//
// A driver must keep these laws. Package conformance checks them under the same
// numbers.
//
//   - L1: Join adds exactly one member, behind all that ever joined. If the answer is
//     lost, the session finds its member, or proves that there is none, before it
//     creates another. No failure leaves a ghost.
//   - L2: Ahead and Line are at least as fresh as this session's last Join, Append and
//     Gone. A member that was missing once never comes back. Both also return the
//     header, read no earlier than the line. Ahead costs one round trip: its reads go
//     out together, with the heartbeat if the deadline needs one. It fails with
//     [ErrNotMember] if m itself is not in line.
//   - L3: Gone never misses a departure, and wakes for its member alone. A caller that
//     waits costs the coordinator only the heartbeats of its session. A watch may die
//     unseen, so callers ask Ahead again about once in a session time ([Session] TTL).
//     They then call Gone again for the same member, and that must not pile up
//     anything. In the same way WatchLine never misses a change of its line's members.
//     A caller of WatchPlace does not look again: the session itself finds out within about a
//     session time that a watch has died, once for all its callers. How WatchPlace learns that the
//     election has moved is said below, under "Word of a move".
//   - L4: Leave may be repeated. It removes m and never another member, not even one
//     that has the same key by now.
//   - L5: When the session ends, Done closes and every call fails with
//     [ErrSessionEnded]. What was queued under one session never runs under the next.
//   - L6: Deadline is never later than the end of the session. It has passed before
//     any member of an ended session goes, whoever ended it. It counts from when a
//     request was sent, never from when the answer came. Once it has passed while
//     somebody led, no late answer moves it.
//   - L7: Election E keeps its header at E, its members under E/, and nothing else
//     there, because foreign clients list that folder.
//   - L8: The value of a member is UTF-8 and at most [MaxValue] bytes long. Nobody
//     changes it while the member stands.
//   - L9: A shared member waits only for members that are not shared. Ahead says First for
//     it as soon as none of these stands in front of it, and otherwise names the nearest of
//     them. So several can be first at once, each with a token of its own. A member that is
//     not shared waits for whoever stands just in front of it.
//   - L10: Append adds one item behind all that ever joined, and the item stands whatever
//     becomes of the session. Remove removes one item, and only while the member that it
//     names stands. Claim adds a claim for an item that stands, and no second one as long as
//     the first one stands. Free returns the first item that nobody claims.
//
// # Position, fence, token
//
// The position of a member is its creation index in the coordinator's log: a 64-bit
// number that is unique and grows over the life of the cluster. It is ZooKeeper's
// czxid, etcd's create revision, Consul's CreateIndex. The token of a term is
//
//	fence + position
//
// The fence is a number in the header, 0 until somebody raises it. Ahead reads it no
// earlier than the line. Leadership goes down the line in the order of positions, so
// tokens grow, and nobody has to write anything to become leader.
//
// Tokens also grow after an election was deleted with its header. Whoever raises a
// fence first writes it to a second record, named like the election with ".fence" at
// the end, and package elect restores it from there. Drivers do nothing for that.
//
// # Word of a move
//
// The header of an election says whether it has moved. Leaders and operators write it in many
// terms, to acknowledge or to ask a leader to resign. If all waiters watched the header, each of
// these writes would wake the whole line, and on some coordinators each waiter would have to ask
// again. So the word is passed down the line. The first member watches the header. When that says
// that the election has moved, the first member leaves, which wakes the next one, and so on: one at
// a time. Only a pinned or a foreign member does not leave, and would stop the word. So the waiter
// just behind such a member also watches the header, and wakes for the seal in it. That is one
// waiter behind each such member, or several if they are shared.
//
// A driver tells foreign members by their keys. Its own have a mark there: on etcd the lease, on
// ZooKeeper the random part of the name. On ZooKeeper a name without a random part may be of either
// kind; see package zookeeper. No other library has lines on Consul, or in package local.
//
// # Fresh reads
//
// Where a coordinator answers reads from a server that may lag behind, as ZooKeeper does, an answer
// may be older than a write that somebody else has already been told of. Refresh ([Session])
// makes the reads that follow it fresh. A function that asks once for the present state calls it
// first, such as [elect.Election.Leader] and [record.Value.Get]. Three kinds of callers need no
// Refresh: one that follows changes, because the newest state comes in any case; one that stands in
// line, because L2 is enough for it; and one that reads a version to write on, because the write
// fails if the version is old. If such a caller finds that there is nothing to write, it calls Refresh
// and looks again before it says so.
//
// # Abilities
//
// A coordinator may lack five things. If its sessions do not end by time, Session TTL is 0. If
// it has no shared members, no pins, no items, or no records, its sessions embed NoShares,
// NoPins, NoItems or NoRecords of package [kit]. Package elect works without all five; package migrate needs
// pins and records. Six more abilities are for people, or for one kind of coordinator. Most
// drivers embed substitutes for them: NoLines, NoSurvey, NoImports, NoDates, NoFiles and AlwaysFresh.
//
// There is one kind of session, so a wrapper that embeds one passes everything on. A driver that
// cannot watch places makes WatchPlace of Gone and Ahead ([kit.WatchPlace]), and Head of Line.
// [kit.FirstFree] and [kit.ClaimedBefore] decide about claims. A wrapper that changes what Ahead
// returns must also change what Join and WatchPlace return.
//
// # Lost answers
//
// A lost answer does not mean that nothing happened. In Join, Claim, Leave and Pin the driver
// itself finds out what happened, because a wrong guess would leave a ghost or let two
// lead. Another client may have acted on what was done before the driver looks: it may have written the
// header since a Pin, for example. Put and Delete report [ErrUnavailable], and the caller reads the record again:
// each write gives a record a version that it never had before. Append and Remove are like Put and
// Delete.
//
// # Clocks
//
// A suspended machine must not gain time: Go's monotonic clock stands still meanwhile,
// and the coordinator's does not. Drivers of remote coordinators therefore measure with
// the larger of the monotonic clock and, on Linux, CLOCK_BOOTTIME (clock_gettime(2)).
// Callers ask for Deadline at each use and never keep it.
//
// # Concurrency
//
// Many goroutines use a Backend and its Session at once. Every call returns soon after
// its context ends, also if the coordinator cannot be reached. The session then clears
// up what the call has sent.
//
// # Writing a driver
//
// Answer these questions about the coordinator before writing code, from its source or
// its manual, and put the answers into the package comment:
//
//   - Which number orders members, is unique, and never falls (L1)?
//   - Which reads are fresh enough to say who is first (L2)? Which reads show what another client
//     has just written?
//   - What tells that one key has gone, and what if that notice is lost (L3)?
//   - From when does the coordinator count the session time, and which answer proves
//     that it has counted (L6)? A server that was cut off or paused may go on to answer.
//   - What ends a session? If nothing at the coordinator counts time, the other sessions must end
//     it: each of them measures with its own clock how long a number, which only the session itself
//     changes, has stayed the same ([kit.Silence]).
//   - What happens to sessions when the coordinator itself changes its leader? Can a write that was
//     acknowledged be missing afterwards?
//   - Which writes can be made on condition, in one step with the condition? What tells a record that was
//     deleted and made anew from the one before it?
//
// What all drivers do alike is in package [kit]: one opening for all who ask for a
// session, checking the arguments of a call and binding it to its session, ending a session
// and waiting for that, trying again, and wrapping errors. What is left for a driver is
//
//   - its wire: requests that are sent once, each with a time limit, and whose errors tell
//     an answer from an answer that was lost;
//   - its recipe: the requests of each method. Join must find its own member after a lost
//     answer, or make sure that none comes late. Ahead reads the member in front, the member
//     itself and the record at one instant, and [kit.PlaceOf] decides;
//   - its deadline rule: which heartbeat proves that the session lives, and how long. It also tells its
//     life of each heartbeat that has moved the deadline ([kit.Life.Beat]), for metrics.
//
// For abilities that your driver does not have yet, embed the substitutes of kit, such as
// kit.NoPins. Run package conformance from the first day on: it says which law is not kept, and
// what was seen. Package memory keeps each law in the fewest words; package etcd is the one to read
// for a coordinator that is a server. Package [example] is a whole driver in 400 lines, for a small
// coordinator behind HTTP: copy its folder into a module of your own, with the test that has the
// suite judge it. CONTRIBUTING.md says which file of a driver has what.
//
// A driver registers what it tells of itself from init ([coordinator.Register]). Scheme and Open
// are enough to open URLs. The other fields of [coordinator.Driver] make the tools of this module
// know the driver like those that are here, with no edit elsewhere: the command completes its URLs,
// prints what to grant, says that something else is at an address, and has the suite run on a
// cluster in use. For the last of these the driver brings a [coordinator.Operator]. It acts on the
// coordinator as people do, and uses none of the driver's sessions, because tests judge the
// sessions by such acts.
//
// [kit]: https://pkg.go.dev/github.com/succession-dev/succession/backend/kit
// [kit.Life.Beat]: https://pkg.go.dev/github.com/succession-dev/succession/backend/kit#Life.Beat
// [kit.WatchPlace]: https://pkg.go.dev/github.com/succession-dev/succession/backend/kit#WatchPlace
// [kit.FirstFree]: https://pkg.go.dev/github.com/succession-dev/succession/backend/kit#FirstFree
// [kit.ClaimedBefore]: https://pkg.go.dev/github.com/succession-dev/succession/backend/kit#ClaimedBefore
// [kit.PlaceOf]: https://pkg.go.dev/github.com/succession-dev/succession/backend/kit#PlaceOf
// [kit.Silence]: https://pkg.go.dev/github.com/succession-dev/succession/backend/kit#Silence
// [coordinator]: https://pkg.go.dev/github.com/succession-dev/succession/backend/coordinator
// [coordinator.Driver]: https://pkg.go.dev/github.com/succession-dev/succession/backend/coordinator#Driver
// [coordinator.Register]: https://pkg.go.dev/github.com/succession-dev/succession/backend/coordinator#Register
// [coordinator.Operator]: https://pkg.go.dev/github.com/succession-dev/succession/backend/coordinator#Operator
// [example]: https://pkg.go.dev/github.com/succession-dev/succession/backend/kit/example
// [elect.Election.Leader]: https://pkg.go.dev/github.com/succession-dev/succession/elect#Election.Leader
// [record.Value.Get]: https://pkg.go.dev/github.com/succession-dev/succession/recipes/record#Value.Get
package backend
