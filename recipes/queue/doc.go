// Package queue keeps items in a line until somebody has worked on each of them, also if those
// who put them and those who take them come and go.
//
//	q := queue.New(b, "mails", nil)
//	err := q.Put(ctx, "to: alice")
//	...
//	item, err := q.Take(ctx)
//	if err != nil {
//		return err
//	}
//	defer item.Return(ctx) // does nothing after Done
//	if err := send(item.Context(), item.ID, item.Value); err != nil {
//		return err
//	}
//	return item.Done(ctx)
//
// # The lines
//
// A queue has three lines:
//
//	mails-items    i1    i2    i3    i4    the items, in the order in which they were put
//	mails-claims   a:i2  b:i1              a has taken i2, b has taken i1
//	mails-turn     c  <-  d  <-  e         c takes the next item; d waits until c has one
//
// An item belongs to no session, and stands until it is confirmed. Whoever takes it joins the line
// of the claims, with a member that says for which item it is. Of several claims for one item the
// first one holds ([backend.Sharer] Claim). So a claim is a term of an election among those who claim the same item
// ([recipes.Hold]): it has a token, it says when it is lost, and it ends with its session. An item
// whose taker dies is then free at its place, in front of all that were put later.
//
// Those who wait for an item stand in the third line, and only its first looks at the other two. So
// an item wakes one of those who wait, however many they are, and then the one whose turn is next.
//
// # Twice
//
// An item is worked on once as long as nothing goes wrong. It is worked on again if its taker loses
// the claim before it has confirmed: the work may have been done, and nobody knows. So work must
// be harmless when it is done twice, or be done under one of the two numbers that tell:
//
//   - [Item] ID is the same for all who take an item. A store that remembers the IDs in the
//     transaction that does the work does it once.
//   - The token ([recipes.Hold.Token]) is larger than that of everybody who took the item before. A
//     store that refuses smaller tokens than it has seen for the item is safe from a taker that was
//     paused, and goes on with work that another has by now.
//
// [Item.Done] is refused by the coordinator, in the same atomic step, once the claim has gone. So
// of all who took an item one at most has confirmed it.
//
// Work that fails is tried again by whoever takes the item next, which may be the same process at once. [Item.ReturnAfter] has
// everybody go on with the other items meanwhile.
//
// # What it costs
//
// To put: one request, and one more where there is a Limit, which reads all items, or two when it is nearly reached. To take an item that is there: four,
// to take a turn, to find the item, claim it and give the turn back; to confirm it: two. That is on etcd. On Consul a claim takes
// one more, and a turn two. On ZooKeeper, where requests are smaller, to take and to confirm an item takes sixteen, in ten
// round trips. Of those who wait for an item the first has a watch on the items and one on the claims, and each of the
// others one on the member just in front.
//
// How many items stand does not count. On etcd a take reads a few of them, one more than are claimed. On ZooKeeper there is no
// such request: it reads the list of their names. On Consul there is none either, so a session reads the whole
// line once for some sixty items that it takes.
//
// # Other queue recipes
//
// This is the queue of ZooKeeper's documentation, Curator's DistributedQueue with lockPath and
// kazoo's LockingQueue. Unlike them, it says when a taker has lost an item before another has it,
// it hands out a token, and a confirmation counts only while the claim holds.
package queue
