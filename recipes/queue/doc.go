// Package queue keeps items in a line until somebody has worked on each of them, although the
// processes that put and take them come and go.
//
//	q := queue.New(b, "mails", nil)
//	id, err := q.Put(ctx, "to: alice")
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
//	mails-turn     c  <-  d  <-  e         c waits for an item; d waits until c has one
//
// An item belongs to no session, and stands until it is confirmed. A taker joins the line of the
// claims, with a member that names the item. Of several claims for one item only the first holds
// ([backend.Session] Claim). So a claim is a term of an election among the takers of one item
// ([recipes.Hold]): it has a token, it says when it is lost, and it ends with its session. The item
// of a taker that dies is then free again at its place, in front of all that were put later.
//
// A taker that finds a free item claims it at once. So takers that work side by side do not wait for
// each other; if two claim one item, one of them goes on to the next one. Takers that find no free item
// stand in the third line, and only the first of them looks at the other two lines. So an item wakes one
// taker, however many wait, and then the one whose turn is next.
//
// # Twice
//
// An item is worked on once as long as nothing goes wrong. It is worked on again if its taker loses
// the claim before it has confirmed: the work may have been done, and nobody knows. So either work
// must do no harm when it is done twice, or it must use one of two numbers:
//
//   - [Item] ID is the same for all takers of an item. A store that remembers the IDs in the
//     transaction that does the work does it once.
//   - The token ([recipes.Hold.Token]) is larger than that of every earlier taker of the item. A
//     store that refuses tokens smaller than the largest it has seen for the item is safe from a
//     taker that was paused, and goes on although another has the item by now.
//
// Once the claim has gone, the coordinator refuses [Item.Done], in the same atomic step. So at most
// one of all takers of an item confirms it.
//
// Work that fails is tried again by the next taker of the item, which may be the same process at
// once. After [Item.ReturnAfter] all go on with the other items meanwhile.
//
// # What it costs
//
// To put takes one request, on ZooKeeper two. With a Limit it takes one more, which reads all items, or two more when
// the queue is nearly full. To take an item that is there takes two: find it, and claim it. To
// confirm it takes two: remove it, and then the claim. That is on etcd. On Consul a claim takes one
// more. On ZooKeeper, where requests are smaller, to take and to confirm an item takes eight, in six
// round trips. An item that is held for longer than a moment also costs the watches of a holder: five
// requests on etcd, and three on Consul. A take that meets another at the same item looks, and claims,
// once more for each. A taker that has to wait also takes a turn, as a lock is taken. The first that
// waits has a watch on the items and one on the claims; each of the others has one on the member just
// in front.
//
// How many requests that are does not depend on how many items stand, but for a Put with a Limit on
// ZooKeeper, which reads one by one. On etcd a take reads a few of them, one more than are claimed.
// On ZooKeeper there is no such request: it reads the list of their names, 16 bytes for each. On
// Consul there is none either, so a session reads the whole line once for about sixty items that it
// takes.
//
// # Other queue recipes
//
// This is the queue of ZooKeeper's documentation, Curator's DistributedQueue with lockPath and
// kazoo's LockingQueue. Unlike them, it says when a taker has lost an item before another has it,
// it hands out a token, and a confirmation counts only while the claim holds.
package queue
