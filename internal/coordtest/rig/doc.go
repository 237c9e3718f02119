// Package rig connects package coordtest to the conformance suite: it makes the
// faults of a harness from the servers of a cluster, and from the test binary, which also
// serves as a candidate in a process of its own.
//
//	func TestMain(m *testing.M) {
//		rig.Candidate() // does not return in such a process
//		...
//	}
//
//	h.Faults = conformance.Faults{Expire: ..., ...}
//	h.Faults.Network(func(b backend.Backend) []*proxy.Proxy { ... })
//	h.Faults.Process = rig.Process("etcd://" + addr)
//	h.Faults.Cluster = rig.Cluster(cluster, func(b backend.Backend) string { ... })
//
// What a coordinator's own tools must do, such as the end of a session, is left to
// the driver's tests.
package rig
