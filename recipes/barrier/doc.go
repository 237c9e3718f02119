// Package barrier has several processes begin at the same moment, or end at the same moment.
//
//	b, err := succession.Connect(ctx, "etcd://h1:2379/app")
//	...
//	if err := barrier.New(b, "load-test/start", 3, nil).Wait(ctx); err != nil {
//		return err
//	}
//	// three processes are here
//
// A [Barrier] is passed together: [Barrier.Wait] returns when n participants wait, and then for
// all n. A [DoubleBarrier] is entered together and left together: nobody's [Inside.Leave] returns
// before all of the n that entered together have called it, or died.
//
// # The line and the record
//
// The participants stand in a line that the coordinator keeps, in the order in which they came. A
// record lists for whom the barrier has opened: who was counted, in each round.
//
//	NAME-arrivals   a   b   c   |   d  <-  e    it has opened for a, b and c; d counts, e waits for d
//	NAME-open       {"rounds": [{a, b, c}]}
//
// The first for whom it has not opened counts: it watches the line. When n stand there for whom it
// has not opened, it adds them to the record, on condition that the record has not changed since it
// was read, and that the writer itself still stands. Everybody else waits for the record, and for
// whoever is just in front: if the one who counts goes, the next one counts.
//
// # What it promises
//
//   - It opens for n that stood in line at one moment. Whoever has died before that does not count:
//     its session has ended, and its member has gone. A process that is cut off or paused counts
//     until the coordinator ends its session; if it was to count the others, they wait until then.
//   - All n pass, in this session or in the next: a call that was counted, and has lost its session
//     before it knew, finds itself in the record.
//   - No call is counted twice, whatever becomes of its sessions and of the answers to its requests. The record
//     names a few hundred of those that were counted last. A call that is back later than that fails, since
//     nobody knows whether it was counted.
//   - Late comers are counted in the next round, which needs no reset, and can open while others are
//     still inside.
//
// A participant that is inside has a context ([recipes.Hold]) that ends before the others can take it for having left, and
// Put writes only while it is inside.
//
// # What it costs
//
// To wait: one request to join the line, four to see who is in front and whether the barrier has
// opened, and two watches. To be told that it has opened, and to leave: two requests each.
// Heartbeats belong to the session. Where the coordinator reads a line member by member, as
// ZooKeeper does, each participant reads once the values of those who came before.
//
// A join and an exit wake the one who counts; an exit also wakes whoever stands just behind. Only
// the opening wakes all who wait, also those of the next round, as each of them has to see whether
// it is for them. Inside a double barrier each exit wakes the first of the round, which stays until
// all others have gone, and its own exit wakes all.
//
// # Other barrier recipes
//
// This is the double barrier of ZooKeeper's documentation, Curator's DistributedDoubleBarrier and
// etcd's concurrency recipe DoubleBarrier. There each participant watches one node that says that
// the barrier is open, and a late comer finds it open, and passes alone; here it waits for the next
// round. Curator's DistributedBarrier and kazoo's Barrier, which somebody sets and removes, are a
// record: see package record.
package barrier
