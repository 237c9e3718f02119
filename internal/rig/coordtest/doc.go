// Package coordtest starts real coordinators for tests, and stands between them and
// their clients as a network does that fails.
//
// # Servers
//
// A [Server] is one process with an address and data that stay the same from start to
// start. Tests do to it what happens to servers: Kill, Pause, Resume, Restart, Wipe. A
// [Cluster] is the servers of one coordinator. How the processes of a coordinator are
// configured and when they serve is the only thing that differs between [ZooKeeper],
// [Etcd] and [Consul]; each comes also with TLS or with credentials:
//
//	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3, Links: true})
//	leader, err := z.Leader(ctx)
//	...
//	z.Isolate(leader) // from the other servers; its clients still reach it
//
// Tests that only need some ZooKeeper share one of a single server, which starts in
// half a second, and take an election of their own in it:
//
//	func TestMain(m *testing.M) { coordtest.Main(m) }
//
//	func TestX(t *testing.T) {
//		addrs := coordtest.SharedZooKeeper(t).Addrs()
//		election := coordtest.Name(t)
//
// Time in these servers goes ten times as fast as in production: a tick is 200 ms, and
// sessions may be as short as two ticks. Data live in a temporary folder. ZooKeeper
// syncs them to disk unless NoSync says otherwise, etcd never does, and a single Consul
// keeps them in memory unless Durable says otherwise. A test that fails shows the end of
// each server's log. Four-letter commands ([FourLetter]) show from outside what a client
// costs its server: [ParseWatches] says who watches what. A ZooKeeper can also be backed
// up and restored, and its wall clock be set: the folder clock has the library that
// shifts it.
//
// ZooKeeper is what is installed on the machine; etcd and Consul are built once, in the
// versions that the modules in the folder servers pin ([ServerBinary]). They are kept in the
// user's cache folder, with an archive of ZooKeeper's classes that lets it start faster, and
// what has been compiled of the folders peers and clock. The folder peers
// has programs that stand in a ZooKeeper line as other libraries' candidates do
// (Curator's, kazoo's, and ZooKeeper's own).
//
// # The network
//
// Between a client and a server stands a proxy (package conformance/proxy), which
// [NewProxy] starts on a port below the range of outgoing connections:
//
//	p := coordtest.NewProxy(t, server.Addr())
//	... connect to p.Addr() ...
//	p.Block(proxy.ToClient) // the server hears its client, who hears nothing
//
// Between the servers of a [Cluster] no proxy can stand, as nothing tells it which of
// them has called. With the option Links each server has a network of its own instead,
// in a namespace of the kernel, and this process carries the packets from one to the
// other, or does not: a test that keeps the processor busy slows the servers down. It
// takes Linux and root; without, the start fails and says so. Nothing of it has a name, and all of it is gone when the servers are.
//
// Package rig connects all this to the conformance suite.
//
// # What it does not promise
//
// Where ZooKeeper or java is missing, tests fail and say how to install them; they never
// skip. On Linux no server outlives its test binary, however that ends; one that is
// killed leaves its temporary folder, and on other systems its servers, too.
//
// Ports are chosen at random and may be lost to another process before a server has
// bound them; the start of a coordinator then tries others, while the restart of a
// server fails.
package coordtest
