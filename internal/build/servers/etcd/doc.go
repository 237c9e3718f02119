// Package etcd pins the etcd server and etcdctl that the tests run against, in a
// module of its own: whoever uses the library sees none of their dependencies.
// Package internal/rig/coordtest builds them into a cache folder outside the tree.
package etcd
