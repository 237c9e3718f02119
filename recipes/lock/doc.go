// Package lock keeps several processes from working on one thing at the same time.
//
//	b, err := succession.Connect(ctx, "etcd://h1:2379/app")
//	...
//	held, err := lock.NewMutex(b, "reports/2026", nil).Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer held.Unlock(ctx)
//	return write(held.Context(), held.Token())
//
// # The line
//
// A [Mutex] is an election in which the leader holds the lock. All that ask for the lock stand in a
// line that the coordinator keeps, in the order in which they asked:
//
//	a  <-  b  <-  c        a holds; b waits until a has gone, c until b has gone
//
// So the lock is fair, and one exit wakes one process, however many wait. The line is the same
// as that of package elect: the command and the tools of the coordinator show who holds, and
// who waits.
//
// # What holds while a lock is held
//
// A lock that is [Held] is a term of that election ([recipes.Hold]). It can be lost: the
// coordinator gives the lock to the next in line when it has not heard from the holder for a
// session time, or when an operator removes the holder from the line.
//
//   - The context ends before another can hold the lock, as long as the process runs.
//     [recipes.Hold.Check] notices also that the process was paused.
//   - The token is larger than that of every earlier holder. A store that refuses a token
//     smaller than the largest it has seen is safe from a holder that was paused between its
//     check and its write.
//   - [recipes.Hold.Put] writes a record of the coordinator on condition that the lock is still
//     held, in one atomic step.
//
// A process that takes the same lock twice waits for itself: locks are not reentrant.
//
// # What it costs
//
// To take a free lock: one round trip to join the line and, where the answer to that does not tell it, one for
// the fence and one to see who stands in front; docs/recipes.md says where. To wait: one watch on the
// member just in front, and one round trip when that has gone. To unlock: one. Heartbeats belong to the session, and are as many for one lock as for a hundred.
//
// # Other lock recipes
//
// This is the lock of ZooKeeper's documentation ("Locks"), Curator's InterProcessMutex, kazoo's
// Lock and etcd's concurrency.Mutex. Unlike them, it says when a lock is lost, before another
// holds it, and it hands out a token. Consul's api.Lock has no line: the first that comes after a
// release holds it, and a release wakes all that wait.
package lock
