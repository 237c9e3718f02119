// Package port has the default ports of the coordinators, for URLs without a port.
package port

const (
	ZooKeeper = "2181" // clientPort in zoo_sample.cfg
	Etcd      = "2379" // --listen-client-urls
	Consul    = "8500" // ports.http
)
