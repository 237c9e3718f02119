// Package coordtest starts real coordinators for tests, and makes the networks between
// them and their clients fail.
//
// # Servers
//
// A [Server] is one process. It keeps its address and data when it is restarted. Tests do to
// it what happens to servers: Kill, Pause, Resume, Restart, Wipe. A [Cluster] is the servers
// of one coordinator. [ZooKeeper], [Etcd] and [Consul] differ only in how their processes are
// configured, and in what tells that they serve. Each can use TLS or credentials. [Kubernetes]
// is an API server with an etcd below it. [Redis] is for other libraries to be measured on.
//
//	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Nodes: 3, Links: true})
//	leader, err := z.Leader(ctx)
//	...
//	z.Isolate(leader) // from the other servers; its clients still reach it
//
// Tests that only need some ZooKeeper share one with a single server, which starts in
// half a second. Each test then uses an election of its own:
//
//	func TestMain(m *testing.M) { coordtest.Main(m, 8) }
//
//	func TestX(t *testing.T) {
//		addrs := coordtest.SharedZooKeeper(t).Addrs()
//		election := coordtest.Name(t)
//
// Times are a tenth of what is usual in production: a tick of ZooKeeper is 200 ms, and
// sessions may be as short as two ticks. Data live in memory, in a folder of /dev/shm if there
// is room; with the option Disk they are on the disk, and writes wait for it. A single Consul
// server keeps nothing beyond its process unless Durable is set. A test that fails shows the
// end of each server's log.
//
// Four-letter commands ([FourLetter]) show what a client costs its ZooKeeper server;
// [ParseWatches] says who watches what. A ZooKeeper can also be backed up and restored, and
// its wall clock can be set: the folder clock has the library that shifts it. The folder
// peers has programs that stand in a ZooKeeper line with other libraries (Curator, kazoo,
// and ZooKeeper's own recipe).
//
// ZooKeeper must be installed on the machine. The others are built once, in the
// versions that the modules in the folder servers pin ([ServerBinary]), and kept in the
// user's cache folder. The same folder keeps an archive of ZooKeeper's classes, which lets it
// start faster, and what was compiled from the folders peers and clock.
//
// # The network
//
// Between a client and a server stands a proxy (package conformance/proxy), which
// [NewProxy] starts on a port below the range of outgoing connections:
//
//	p := coordtest.NewProxy(t, server.Addr())
//	... connect to p.Addr() ...
//	p.Block(proxy.ToClient) // the server hears the client, but the client hears nothing
//
// No proxy can stand between the servers of a [Cluster], because it could not tell which of
// them has connected. With the option Links, each server instead has a network of its own,
// in a namespace of the kernel, and this process carries the packets from one to another, or
// does not. So a test that keeps the processor busy slows the servers down. Links needs Linux
// and root; without them, the start fails and says so. Nothing of such a network has a name,
// and nothing of it is left when the servers have ended.
//
// Package rig connects all this to the conformance suite.
//
// # What it does not promise
//
// If ZooKeeper or java is missing, tests fail and say how to install them; they never
// skip. On Linux no server outlives its test binary, however that ends. A test binary that is
// killed leaves its temporary folder behind, and on other systems its servers, too.
//
// Ports are chosen at random, and another process may take one before the server has
// bound it. The start of a coordinator then tries other ports, but the restart of a
// server fails.
package coordtest
