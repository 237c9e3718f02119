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
// first one holds. So a claim is a term of an election among those who claim the same item
// ([elect.Term]): it has a token, it says when it is lost, and it ends with its session. An item
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
//   - The token ([elect.Term.Token]) is larger than that of everybody who took the item before. A
//     store that refuses smaller tokens than it has seen for the item is safe from a taker that was
//     paused, and goes on with work that another has by now.
//
// [Item.Done] is refused by the coordinator, in the same atomic step, once the claim has gone. So
// of all who took an item one at most has confirmed it.
//
// # What it costs
//
// To put: one request, and two more where there is a Limit. To take an item that is there: eight,
// and up to three more where joining does not tell the place, as on Consul and in package local; to confirm it: two. Of those who wait for an item the first has a
// watch on the items and one on the claims, and each of the others one on the member just in front.
//
// Taking reads the line of the items twice. On ZooKeeper that is a request for each item, so a
// queue there is for hundreds of items, and not for many thousands.
//
// # Other queue recipes
//
// This is the queue of ZooKeeper's documentation, Curator's DistributedQueue with lockPath and
// kazoo's LockingQueue. Unlike them, it says when a taker has lost an item before another has it,
// it hands out a token, and a confirmation counts only while the claim holds.
package queue
