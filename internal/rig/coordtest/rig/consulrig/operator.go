package consulrig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
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

// An Operator is a [rig.Operator].
type Operator struct {
	Client *api.Client
	Prefix string // the folder of the backends; empty is the root
}

var _ rig.Operator = Operator{}

// Remove implements [rig.Operator].
func (o Operator) Remove(ctx context.Context, m backend.Member) error {
	_, err := o.Client.KV().Delete(path.Join(o.Prefix, m.Line, m.Key), (&api.WriteOptions{}).WithContext(ctx))
	return err
}

// Drop implements [rig.Operator].
func (o Operator) Drop(ctx context.Context, line string) error {
	at := path.Join(o.Prefix, line)
	ok, _, _, err := o.Client.KV().Txn(api.KVTxnOps{
		{Verb: api.KVDelete, Key: at},
		{Verb: api.KVDeleteTree, Key: at + "/"},
	}, (&api.QueryOptions{}).WithContext(ctx))
	if err == nil && !ok {
		err = fmt.Errorf("the election %s could not be deleted", line)
	}
	return err
}

// Backup implements [rig.Operator] by a snapshot, which is restored while Consul runs.
func (o Operator) Backup(ctx context.Context) (restore func(context.Context) error, err error) {
	r, _, err := o.Client.Snapshot().Save((&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	snapshot, err := io.ReadAll(r)
	return func(ctx context.Context) error {
		return o.Client.Snapshot().Restore((&api.WriteOptions{}).WithContext(ctx), bytes.NewReader(snapshot))
	}, err
}
