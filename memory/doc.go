// Package memory is a coordinator inside the process: the reference
// implementation of every law of package backend, and a test double for programs
// that use package elect and want to see their own failover, in virtual time and
// without waiting.
//
//	c := memory.New(nil)             // the coordinator
//	web1 := c.Client("web-1")        // two processes, as the coordinator sees them
//	web2 := c.Client("web-2")
//	...
//	web1.Cut()                       // web-1 is partitioned away, and loses its term in time
//
// # How it works
//
// A [Coordinator] keeps lines, records and sessions behind one lock, with one log
// index that every change moves on: a member's position and a record's version are
// the index that made them. Each [Backend] is a client with a connection of its
// own, two pipes that deliver in order. Requests, answers and notifications are
// messages in these pipes, and the client knows what it was told over them and
// nothing else, as over a network.
//
// Both ends keep the session's time, each by itself. The client sends a heartbeat
// every third of the TTL, and its deadline is a TTL after the newest acknowledged
// one was sent; when that passes, the session ends in the client at once, cut off or
// not. The coordinator ends it a TTL, and [Options].Slack, after it has handled the
// newest heartbeat, and not before the client's deadline, as it cannot have
// handled it earlier than it was sent.
//
// Join, Leave and Pin carry a number within their session, under which the
// coordinator remembers the answer until the client has it. When the connection
// breaks in between, the client sends them again under the same number: a call
// that has taken effect is answered and not run twice.
//
// A blocking call is one request, answered when its event comes: Gone by the
// departure of its member alone. A call whose context has ended leaves the request
// in place for whoever waits for the same next, so that asking again costs nothing.
//
// # Faults
//
// On the client: [Backend.Cut], [Backend.CutRequests], [Backend.CutAnswers] and
// [Backend.Heal]; [Backend.Sever] and [Backend.Hide]; [Backend.Delay];
// [Backend.Disconnect]; [Backend.LoseRequest] and [Backend.LoseAnswer]; [Backend.Drift];
// [Backend.Expire] and [Backend.Kill]. On the coordinator: [Coordinator.Restart];
// [Coordinator.Pause] and [Coordinator.Resume]; [Coordinator.Remove],
// [Coordinator.Drop] and [Coordinator.Reset]; [Coordinator.Snapshot].
//
// No call has a time limit of its own, apart from Session and Backend.Close. While
// a client is cut off, or the coordinator paused, its calls block until that is
// over, until their context ends, or until the session ends by its deadline.
//
// What a test may want to know, it asks the coordinator, whose word is the truth:
// [Coordinator.Members], [Coordinator.Sessions], [Coordinator.Record],
// [Coordinator.Requests] and [Coordinator.Wakeups].
//
// # Virtual time
//
// The package takes its time from package time alone, and owns no goroutine: what
// must happen later happens in timers, which are stopped when a client is closed or
// fire with nothing to do. In a bubble of testing/synctest an hour of heartbeats
// takes no time. Make the coordinator and its clients inside the bubble.
//
// # URLs
//
// memory:NAME?ttl=10s&client=web-1 is a new client of the coordinator that NAME
// means in this process; see [Named]. Both parameters may be left out.
//
// # What it does not promise
//
// Nothing outlives the process, and nothing is shared with another one: this
// elects a leader among clients in one process. For processes of one machine there
// is package local. And as Go's clock stands still while a machine is suspended,
// so do both ends of a session here.
package memory
