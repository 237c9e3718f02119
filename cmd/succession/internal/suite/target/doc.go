// Package target makes a harness for package conformance out of nothing but the URL
// of a coordinator that is in use.
//
// Its faults hit the clients and elections of the suite alone. [Target.Harness]
// puts TCP proxies of its own in front of each client that it opens, one for each
// server of the URL: they hold traffic back, and reset connections. A candidate in a
// process of its own is this command, started again. An operator's acts are done with the
// coordinator's own client and the credentials of the URL ([coordinator.Operator]), and only
// below the suite's prefix. It never touches a server.
//
// # What it does not promise
//
// A proxy sees bytes, no requests, so it can neither count requests nor lose the
// answer to a chosen one. It stands on this machine: a server is named by the
// proxy's address, so TLS works only where one name stands in the certificates of
// all servers, which the URL's server-name must then give.
package target
