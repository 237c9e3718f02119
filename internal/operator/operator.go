// Package operator does to a coordinator what people do with its own tools. It looks at what
// is stored, and deletes members and whole elections without asking the processes that joined
// them. It uses the coordinator's own client library, and no driver of this module.
package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// An Operator acts on one coordinator. The names that its methods take are those of elections
// and records, without the URL's prefix. It connects anew for each call and keeps no connection
// open. It is safe for concurrent use.
type Operator interface {
	// Exists reports whether anything is stored at the name or below it.
	Exists(ctx context.Context, name string) (bool, error)
	// Remove deletes a member. It succeeds if the member does not stand any more.
	Remove(ctx context.Context, m backend.Member) error
	// Drop deletes an election and its members in one step. It succeeds if there is no such
	// election.
	Drop(ctx context.Context, line string) error
	// Clear deletes everything at the name and below it. The name must not be empty: that would
	// mean everything that is stored.
	Clear(ctx context.Context, name string) error
}

// New returns an operator of the coordinator that u names. It uses the addresses, the prefix
// and the credentials in u. New does not connect. It returns [errors.ErrUnsupported] for a
// coordinator other than ZooKeeper, etcd and Consul.
func New(u *backend.URL) (Operator, error) {
	switch u.Scheme {
	case "zookeeper":
		return newZooKeeper(u)
	case "etcd":
		return newEtcd(u)
	case "consul":
		return newConsul(u)
	}
	return nil, fmt.Errorf("an operator of %s: %w", u, errors.ErrUnsupported)
}
