// Package barrier makes several processes begin, or end, at the same moment.
//
//	b, err := succession.Connect(ctx, "etcd://h1:2379/app")
//	...
//	if err := barrier.New(b, "load-test/start", 3, nil).Wait(ctx); err != nil {
//		return err
//	}
//	// three processes are here
//
// Participants pass a [Barrier] together: when n of them wait, [Barrier.Wait] returns for all n.
// They enter and leave a [DoubleBarrier] together: [Inside.Leave] returns when all n that entered
// together have called it, or died.
//
// # The line and the record
//
// The participants stand in a line that the coordinator keeps, in the order in which they came. A
// record lists the participants for which the barrier has opened, in each round.
//
//	NAME-arrivals   a   b   c   |   d  <-  e    it has opened for a, b and c; d counts, e waits for d
//	NAME-open       {"rounds": [{a, b, c}]}
//
// The first participant for which the barrier has not opened counts: it watches the line. When n
// such participants stand there, it adds them to the record, on condition that the record has not
// changed since it was read, and that it still stands itself. All others wait for the record and
// for the participant just in front: if the one that counts goes, the next one counts.
//
// # What it promises
//
//   - It opens for n participants that stood in line at one moment. A participant whose session has
//     ended before that does not count, because its member has gone. A process that is cut off or
//     paused counts until the coordinator ends its session. If it was the one to count the others,
//     they wait until then.
//   - All n pass, in this session or in the next: a call that was counted, and lost its session
//     before it knew, finds itself in the record.
//   - No call is counted twice, whatever becomes of its sessions and of the answers to its
//     requests. The record names the last few hundred that were counted. A call that comes back
//     later fails, because nobody knows whether it was counted.
//   - Late comers are counted in the next round, which needs no reset, and can open while others are
//     still inside. It waits for these only if the record has no room for so many rounds: it has room for about
//     7,000 participants.
//
// A participant that is inside has a context ([recipes.Hold]). If the participant is lost, the
// context ends before the others can believe that it has left. Put writes only while it is inside.
//
// # What it costs
//
// To wait: one request to join the line, four to see who is in front and whether the barrier has
// opened, and two watches. To be told that it has opened, and to leave: two requests each.
// Heartbeats belong to the session. Where the coordinator reads a line member by member, as
// ZooKeeper does, each participant reads once the values of those who came before.
//
// A join and an exit wake the participant that counts; an exit also wakes the participant just
// behind. Only the opening wakes all that wait, also those of the next round, because each of them
// has to see whether it opened for it. Inside a double barrier each exit wakes the first of the
// round. The first stays until all others have gone, and its own exit wakes all.
//
// # Other barrier recipes
//
// This is the double barrier of ZooKeeper's documentation, Curator's DistributedDoubleBarrier and
// etcd's concurrency recipe DoubleBarrier. There each participant watches one node that says that
// the barrier is open; a late comer finds it open, and passes alone. Here a late comer waits for
// the next round. Curator's DistributedBarrier and kazoo's Barrier, which somebody sets and
// removes, are a record here: see package record.
package barrier
