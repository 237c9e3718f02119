package etcdrig

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// Reference starts an etcd for the test, and returns a [conformance.Harness] Reference to it: it deletes a
// key that is not there.
func Reference(t testing.TB) func(context.Context) error {
	t.Helper()
	client, err := Dial(coordtest.NewEtcd(t, nil).Addrs())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return func(ctx context.Context) error {
		_, err := client.Delete(ctx, "nobody")
		return err
	}
}

// An Operator is a [rig.Operator].
type Operator struct {
	Etcd   *coordtest.Etcd
	Prefix string // of the backends, with a slash at its end
	Client *clientv3.Client
}

var _ rig.Operator = Operator{}

// Remove implements [rig.Operator].
func (o Operator) Remove(ctx context.Context, m backend.Member) error {
	_, err := o.Client.Delete(ctx, o.Prefix+m.Line+"/"+m.Key)
	return err
}

// Drop implements [rig.Operator].
func (o Operator) Drop(ctx context.Context, line string) error {
	_, err := o.Client.Txn(ctx).Then(
		clientv3.OpDelete(o.Prefix+line+"/", clientv3.WithPrefix()),
		clientv3.OpDelete(o.Prefix+line),
	).Commit()
	return err
}

// Backup implements [rig.Operator].
func (o Operator) Backup(context.Context) (restore func(context.Context) error, err error) {
	return o.Etcd.Backup()
}

// Compact has etcd forget the history of its log up to now.
func (o Operator) Compact(ctx context.Context) error {
	now, err := o.Client.Get(ctx, o.Prefix, clientv3.WithCountOnly())
	if err == nil {
		_, err = o.Client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	}
	return err
}
