// Package consul pins the Consul server that the tests run against, in a module of
// its own: whoever uses the library sees none of its dependencies, and they do not
// go together with those of etcd. Package internal/rig/coordtest builds it into a cache
// folder outside the tree. Consul's licence is BUSL: it is run by the tests, and
// neither linked nor shipped.
package consul
