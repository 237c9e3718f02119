// Package rig connects package coordtest to the conformance suite. It makes the faults of a
// harness with proxies, with the servers of a cluster, and with more processes of the test
// binary, which run as candidates.
//
//	func TestMain(m *testing.M) {
//		rig.Candidate() // does not return in the process of a candidate
//		...
//	}
//
//	h.Faults = conformance.Faults{Kill: ..., ...}
//	rig.Clients(&h.Faults, func(b backend.Backend) []rig.Client { ... })
//	h.Faults.Process = rig.Process("etcd://" + addr)
//	h.Faults.Cluster = rig.Cluster(cluster, func(b backend.Backend) string { ... })
//
// Some faults, such as the end of a session, need the coordinator's protocol or its own
// tools. They are in a package for each coordinator: zookeeperrig, etcdrig and consulrig. The
// tests of the drivers and those of composite backends use them.
package rig
