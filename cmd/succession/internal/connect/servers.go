package connect

import (
	"os"
	"strconv"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/port"
	"github.com/succession-dev/succession/internal/security"
)

// servers are the kinds of coordinators that have servers, by their scheme.
var servers = map[string]struct {
	title string // what people call them
	port  string // where they listen by default
}{
	"zookeeper": {"ZooKeeper", port.ZooKeeper},
	"etcd":      {"etcd", port.Etcd},
	"consul":    {"Consul", port.Consul},
}

// Servers returns the addresses of the servers that u names, host:port each; none where
// it names none, or its kind of coordinator has none.
func Servers(u *backend.URL) []string {
	kind, ok := servers[u.Scheme]
	if !ok {
		return nil
	}
	return u.HostPorts(kind.port)
}

// AsksForTLS reports whether u, or what its driver takes from the environment, asks for
// TLS.
func AsksForTLS(u *backend.URL) bool {
	if u.Scheme == "consul" {
		if on, _ := strconv.ParseBool(os.Getenv("CONSUL_HTTP_SSL")); on { // as Consul's client reads it
			return true
		}
	}
	return security.TLSOf(u) != security.TLS{}
}
