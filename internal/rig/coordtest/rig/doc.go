// Package rig connects package coordtest to the conformance suite: it makes the
// faults of a harness from proxies, from the servers of a cluster, and from the test
// binary, which also serves as a candidate in a process of its own.
//
//	func TestMain(m *testing.M) {
//		rig.Candidate() // does not return in such a process
//		...
//	}
//
//	h.Faults = conformance.Faults{Kill: ..., ...}
//	rig.Clients(&h.Faults, func(b backend.Backend) []rig.Client { ... })
//	h.Faults.Process = rig.Process("etcd://" + addr)
//	h.Faults.Cluster = rig.Cluster(cluster, func(b backend.Backend) string { ... })
//
// What it takes a coordinator's protocol or its own tools to do, such as the end of a
// session, is in a package for each: zookeeperrig, etcdrig, consulrig. The drivers' tests
// and those of composites use the same.
package rig
