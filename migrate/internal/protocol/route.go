package protocol

import (
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/header"
)

// A Side is one of the two coordinators. It is the index of arrays with one element for each.
type Side uint8

// The sides.
const (
	From Side = iota
	To
)

// A Route is the migration that a process takes part in: the addresses of the two
// coordinators, and the ID, or its beginning, of the only migration between them that the
// process accepts; empty for any.
type Route struct{ From, To, ID string }

// Accepts reports whether the process takes part in the migration.
func (r Route) Accepts(m header.Migration) bool {
	return SameAddress(m.From, r.From) && SameAddress(m.To, r.To) && (r.ID == "" || m.ID == r.ID || strings.HasPrefix(m.ID, r.ID+"-"))
}

// choosing are the parameters of a URL that, like the hosts, choose a coordinator, with what they are if they are not
// there: an agent of Consul answers for every datacenter, namespace and partition, and a database has many schemas.
var choosing = map[string]string{"dc": "", "namespace": "", "partition": "", "schema": "succession"} // postgres.DefaultSchema

// SameAddress reports whether two addresses mean one coordinator: two URLs do if they have the same
// scheme, the same hosts in any order, and the same path, dc, namespace, partition and schema. If both name a context of a
// kubeconfig, that is the same, too; a Pod names none.
func SameAddress(a, b string) bool {
	if a == b {
		return true
	}
	u, err := coordinator.ParseURL(a)
	if err != nil {
		return false
	}
	v, err := coordinator.ParseURL(b)
	if err != nil {
		return false
	}
	for name, usual := range choosing {
		if u.Text(name, usual) != v.Text(name, usual) {
			return false
		}
	}
	if a, b := u.Text("context", ""), v.Text("context", ""); a != "" && b != "" && a != b {
		return false
	}
	return u.Scheme == v.Scheme && strings.TrimSuffix(u.Path, "/") == strings.TrimSuffix(v.Path, "/") &&
		slices.Equal(slices.Sorted(slices.Values(u.Hosts)), slices.Sorted(slices.Values(v.Hosts)))
}
