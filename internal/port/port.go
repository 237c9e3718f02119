// Package port has the ports at which coordinators listen by default, for URLs that name
// none.
package port

const (
	ZooKeeper = "2181" // clientPort in zoo_sample.cfg
	Etcd      = "2379" // --listen-client-urls
	Consul    = "8500" // ports.http
)
