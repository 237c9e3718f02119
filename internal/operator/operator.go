// Package operator does to a coordinator what people do with its own tools: it looks at
// what is stored, and deletes members and whole elections past their owners. It uses the
// coordinator's own client, and no driver of this module.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
)

// An Operator acts on one coordinator. Names are those of elections and records. It
// connects for each call, and keeps nothing open. It is safe for concurrent use.
type Operator interface {
	// Exists reports whether anything is stored at the name or below it.
	Exists(ctx context.Context, name string) (bool, error)
	// Remove deletes a member. Who does not stand any more counts as removed.
	Remove(ctx context.Context, m backend.Member) error
	// Drop deletes an election and its members in one step. One that is not there counts
	// as dropped.
	Drop(ctx context.Context, line string) error
	// Clear deletes everything at the name and below it. The name must not be empty.
	Clear(ctx context.Context, name string) error
}

// An Ender is an [Operator] that can end the session of a member, if the member stands: on
// etcd and Consul, but not on ZooKeeper, where that takes the session's password.
type Ender interface {
	End(ctx context.Context, m backend.Member) error
}

// New returns an operator of the coordinator that u names, with the addresses, the prefix
// and the credentials that u says. It returns [errors.ErrUnsupported] for a coordinator
// other than ZooKeeper, etcd and Consul, and does not connect.
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

// ErrNoName is what [Operator.Clear] returns for the empty name, which would mean
// everything that is stored.
var ErrNoName = errors.New("the name is empty")

// bounded calls f, a call of a client that heeds no context, and stop when ctx ends
// first, which makes f return.
func bounded(ctx context.Context, stop func(), f func() error) error {
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	err := f()
	if ctx.Err() != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return err
}
