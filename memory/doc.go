// Package memory is a coordinator inside the process. It is the reference implementation of
// every law of package backend. It is also a test double for programs that use package
// elect and want to see their own failover, in virtual time and without waiting.
//
//	c := memory.New(nil)             // the coordinator
//	web1 := c.Client("web-1")        // two processes, as the coordinator sees them
//	web2 := c.Client("web-2")
//	...
//	web1.Cut()                       // web-1 is partitioned away, and loses its term in time
//
// Package backend has the words and the laws (L1 to L10) that are named here.
//
// # How it works
//
// A [Coordinator] keeps lines, records and sessions behind one lock. Its log is an index
// that every change increases by one. A member's position and a record's version are the
// index that made them, so a record that is deleted and made anew has another one.
//
// Each [Backend] is a client with a connection of its own: two pipes that deliver in order.
// Requests, answers and notifications are messages in these pipes. As over a network, the client
// knows only what they tell it. A call reads the coordinator's only copy of the data, or an older
// state if the client is to lag behind. In any case it sees at least what earlier answers have told (L2).
//
// Joining (L1, L4): Join, Leave and Pin carry a number within their session, under which
// the coordinator remembers the answer until the client has it. If the connection breaks in
// between, the client sends them again under the same number. A call that has taken effect
// is then answered, and does not run twice.
//
// Waiting (L3): a blocking call is one request, which the coordinator answers when its event
// comes. Gone is answered by the departure of its member alone. If the context of a call ends, its
// request stays at the coordinator for the next call that waits for the same event, so to ask again
// costs nothing.
//
// Sessions (L5, L6): each side keeps the session's time by itself. The client sends a
// heartbeat every third of the TTL. Its deadline is a TTL after the newest acknowledged
// heartbeat was sent; when that passes, the session ends in the client at once, whether or not the
// client is cut off. The coordinator ends the session a TTL plus [Options] Slack after it has
// handled the newest heartbeat. That is not before the client's deadline, because no heartbeat is
// handled earlier than it was sent.
//
// # Faults
//
// On the client: [Backend.Cut], [Backend.CutRequests], [Backend.CutAnswers] and
// [Backend.Heal]; [Backend.Sever] and [Backend.Hide]; [Backend.Delay]; [Backend.Lag];
// [Backend.Disconnect]; [Backend.LoseRequest], [Backend.LoseAnswer] and [Backend.HoldBack];
// [Backend.Drift]; [Backend.Expire] and [Backend.Kill]. On the coordinator: [Coordinator.Restart];
// [Coordinator.Pause] and [Coordinator.Resume]; [Coordinator.Remove],
// [Coordinator.Drop] and [Coordinator.Reset]; [Coordinator.Snapshot].
//
// Only Session and Close of a Backend have a time limit of their own. While a client is cut
// off, or the coordinator is paused, other calls block until that is over, until their
// context ends, or until the session ends by its deadline.
//
// A test can ask the coordinator what is true, whatever the clients believe:
// [Coordinator.Members], [Coordinator.Sessions], [Coordinator.Record],
// [Coordinator.Requests] and [Coordinator.Wakeups].
//
// # Virtual time
//
// The package takes its time from package time alone, and owns no goroutine. Timers do what must
// happen later. They are stopped when a client is closed, or they fire and find nothing to do. In a
// bubble of testing/synctest an hour of heartbeats takes no time. Make the coordinator and its
// clients inside the bubble.
//
// # URLs
//
// memory:NAME?ttl=10s&client=web-1 is a new client of the coordinator that is called NAME in
// this process; see [Named]. Both parameters may be left out.
//
// # What it does not promise
//
// Nothing outlives the process, and no other process can take part: this elects a leader
// among clients in one process. Package local is for the processes of one machine.
//
// Go's clock stands still while a machine is suspended, and so do both sides of a session
// here.
package memory
