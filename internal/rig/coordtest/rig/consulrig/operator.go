package consulrig

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// Reference starts a Consul for the test, and returns a [conformance.Harness] Reference to it: it deletes a
// key that is not there.
func Reference(t testing.TB) func(context.Context) error {
	t.Helper()
	client := Admin(t, coordtest.NewConsul(t, &coordtest.ConsulOptions{Durable: true}).Addrs()[0])
	return func(ctx context.Context) error {
		_, err := client.KV().Delete("nobody", (&api.WriteOptions{}).WithContext(ctx))
		return err
	}
}

// Admin returns a client of Consul's own for the test; see [rig.DialUnlabelled].
func Admin(t testing.TB, addr string) *api.Client {
	t.Helper()
	transport := &http.Transport{DialContext: rig.DialUnlabelled}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := api.NewClient(&api.Config{Address: addr, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Backup takes a snapshot of Consul's state, which is restored while Consul runs.
func Backup(ctx context.Context, client *api.Client) (restore func(context.Context) error, err error) {
	r, _, err := client.Snapshot().Save((&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	snapshot, err := io.ReadAll(r)
	return func(ctx context.Context) error {
		return client.Snapshot().Restore((&api.WriteOptions{}).WithContext(ctx), bytes.NewReader(snapshot))
	}, err
}
