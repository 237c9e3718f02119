package etcdrig

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/internal/rig/coordtest"
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

// Compact has etcd forget the history of its log up to now.
func Compact(ctx context.Context, client *clientv3.Client) error {
	now, err := client.Get(ctx, "nobody", clientv3.WithCountOnly())
	if err == nil {
		_, err = client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical())
	}
	return err
}
