package spread

import (
	"fmt"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// Scheme is the scheme of this package's URLs, and the field Backend of its errors.
const Scheme = "spread"

func init() {
	coordinator.Register(coordinator.Driver{
		Scheme:  Scheme,
		Open:    open,
		Example: "spread:/etc/app/clusters.json",
		About:   "several clusters, each election on one",
	})
}

// open opens spread:FILE, or spread:?to=NAME=URL&to=NAME=URL. The schemes of the clusters must be
// registered, as by importing their packages. A URL that is a parameter has its own & and ? escaped,
// as net/url.QueryEscape does. open talks to nobody.
func open(u *coordinator.URL) (backend.Backend, error) {
	to := u.Texts("to")
	if err := u.Err(); err != nil {
		return nil, err
	}
	var source Source
	switch {
	case len(u.Hosts) > 0 || (u.Path == "") == (len(to) == 0):
		return nil, fmt.Errorf("%w URL %s: want spread:FILE, or spread:?to=NAME=URL&to=NAME=URL with each URL escaped", backend.ErrInvalid, u)
	case u.Path != "":
		source = File(u.Path)
	default:
		var clusters []Cluster
		for _, pair := range to {
			name, url, ok := strings.Cut(pair, "=")
			if !ok {
				return nil, fmt.Errorf("%w URL %s: parameter to: want to=NAME=URL", backend.ErrInvalid, u)
			}
			clusters = append(clusters, Cluster{name, url})
		}
		source = List(clusters...)
	}
	return New(source, nil), nil
}
