// Costs measures what elections cost, of this project and of others, side by side on real
// coordinators, and prints tables and draws pictures of it.
//
//	go run -C bench ./costs                          # everything, in less than an hour
//	go run -C bench ./costs -json costs.json -svg .  # and keep the figures, and draw
//	go run -C bench ./costs -measure handover -library 'etcd|zookeeper: zk' -n 5 -times 500
//	go run -C bench ./costs -from costs.json -svg .  # measure nothing
//
// A short table has the handovers of elections in one line, with five candidates in as many
// processes, and no other figures. It is printed, or put into a text that shows it:
//
//	go run -C bench ./costs -measure handover -n 5 -processes 5 -json costs.json -short
//	go run -C bench ./costs -from costs.json -short -into ../docs/performance.md
//
// A table of locks, queues and groups is put into a text in the same way, and measured first. So are the handovers, failovers and lines
// at rest on one coordinator, and what they cost it, for its page:
//
//	go run -C bench ./costs -measure 'lock|contest|queue|group' -library '^(etcd|consul|zookeeper|postgres|local):' -recipes -into ../docs/recipes.md
//	go run -C bench ./costs -limit 3m -measure 'handover|failover|rest|server' -library '^postgres:' -n 2,5,100,1000 -processes 5 -waiters 1 -session 15s -page postgres -into ../docs/postgres.md
//
// Figures that a file of -json has are kept, and those measured again replaced. So several runs
// can fill it, each with other flags. Paths are relative to the folder bench.
//
// # What is measured
//
// Candidates are in processes of their own, apart from this one; see package candidate. Their
// processes stamp what they say, on the one clock of the machine. Servers wait for their disk,
// unless -disk=false.
//
//   - handover: the time from the leader's resigning until the next in line is told that it leads.
//     Beside it is the floor of the coordinator, the least that any election can do: candidates in
//     processes as the others, with the coordinator's own client and nothing else. The leader
//     deletes its key; who watches that key is notified, and reads once. For local it is a lock of
//     the kernel that one gives up and another waits for; for Kubernetes the same with Leases,
//     by HTTP requests and nothing else; and for PostgreSQL with rows, of which LISTEN and NOTIFY tell. The floor's line has one candidate in each process, or two
//     in the one. The lines of all libraries are on one server, and one handover of each and one
//     floor are measured in turn, in random order, so that all meet the same machine; what counts
//     are the ratios. A leader that has resigned joins again at the end of the line before the next
//     handover. The candidates are in one process, or dealt to several.
//
//   - start: the time until all stand in line who join at once, and one leads.
//
//   - failover: the time from the SIGKILL of the leader's process until the next one leads, beside
//     the session's time. It comes at a random moment between two heartbeats.
//
//   - rest: what a line costs in a session time in which nothing happens. The server counts
//     requests and a proxy bytes, those of the leader among them, and of a leader for whom nobody waits before; processor
//     time is that of the process in which all wait, and memory and goroutines what the second half of them adds. Requests of PostgreSQL
//     are statements.
//
//   - server: what share of a core, and how much memory, a line needs at the coordinator in which nothing happens, where each
//     candidate is in a process of its own, as the replicas of a service are. What it needs for nobody is left out. On Kubernetes that is the
//     API server and its etcd.
//
//   - many: elections with two candidates each, in two processes, or with -candidates, and -together
//     in one. How long until all have a leader, what share of a core the processes need at rest, and
//     how many handovers there are in a second when each leader resigns as soon as it leads.
//
//   - lock: how long it takes to lock and to unlock where nobody else wants the lock, and how many requests. The process
//     of the lock is told to lock and to unlock, which takes about a tenth of a millisecond, the same for all. Requests are
//     what the server has received, watches included.
//
//   - contest: how often in a second a lock is held that eight processes want all the time, and how many requests it takes each time. Whoever
//     holds it unlocks it when it is told to.
//
//   - queue: how many items four takers take and confirm in a second, of those that stand (-items), and how many requests each takes. They
//     take 200 at most, after one that does not count. kazoo's and Curator's takers are processes of their own, which are told
//     to take and to confirm; Curator's says that an item is confirmed just before it is.
//
//   - group: how long it takes until all members of a group have seen one more, with its value, and how many requests that takes of each of
//     them. Each has a session of its own, all in one process. Those of Curator's group are asked whom they know, every millisecond.
//
// The candidates of one process share a session in this project, and a connection of ZooKeeper's
// clients; etcd's package concurrency and Consul's api.Lock need a session each.
//
// What is on Kubernetes is measured where the API server has been built or
// -library names it. Those who wait with client-go's leaderelection read the Lease from time to time, and how long a handover
// takes depends on how often: it is measured with the times that client-go has by default, and with ReleaseOnCancel, as the Lease
// would have to run out otherwise. So are River's elector and a lock that is polled, on PostgreSQL. Nobody
// can tell who waits there, so that there is no figure for the start.
//
// # What is not
//
// One machine, whose cores the server, its clients and this program share. No network, and no
// cluster of several servers. All libraries have their default settings but for the session's time.
package main
