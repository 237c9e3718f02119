package etcd_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/coordtest"
)

// TestConformance runs every rule on an etcd of its own, each client behind a proxy
// of its own.
func TestConformance(t *testing.T) {
	server := coordtest.NewEtcd(t, nil)
	operator := admin(t, server.Addrs()...)
	of := func(b backend.Backend) *client { return b.(*client) }
	const prefix = "suite/"
	conformance.Run(t, conformance.Harness{
		Name: "etcd",
		TTL:  ttl,
		// The server looks for expired leases every 500 ms (server/lease/lessor.go).
		Slack:   500 * time.Millisecond,
		Latency: 4 * time.Second,
		Open: func(context.Context) (backend.Backend, error) {
			c, err := open(server.Addrs()[0], &etcd.Options{TTL: ttl, Prefix: prefix})
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Faults: conformance.Faults{
			Expire: func(ctx context.Context, b backend.Backend) error {
				s, err := b.Session(ctx)
				if err != nil {
					return err
				}
				_, err = operator.Revoke(ctx, clientv3.LeaseID(etcd.Lease(s)))
				return err
			},
			Cut: func(b backend.Backend) func() {
				of(b).proxy.Cut()
				return of(b).proxy.Heal
			},
			Deafen: func(b backend.Backend) func() {
				of(b).proxy.Block(coordtest.ToClient)
				return of(b).proxy.Heal
			},
			LoseAnswer: func(b backend.Backend) { of(b).meter.armed.Store(true) },
			Kill: func(b backend.Backend) {
				of(b).proxy.Refuse()
				of(b).proxy.Reset()
			},
			Restart: server.Restart,
			Pause: func(context.Context) (func(), error) {
				return func() {
					if err := server.Resume(); err != nil {
						t.Error(err)
					}
				}, server.Pause()
			},
			Remove: func(ctx context.Context, m backend.Member) error {
				_, err := operator.Delete(ctx, prefix+m.Line+"/"+m.Key)
				return err
			},
			Drop: func(ctx context.Context, line string) error {
				_, err := operator.Txn(ctx).Then(
					clientv3.OpDelete(prefix+line+"/", clientv3.WithPrefix()),
					clientv3.OpDelete(prefix+line),
				).Commit()
				return err
			},
			Reset:    server.Wipe,
			Requests: func(b backend.Backend) int64 { return of(b).meter.sent.Load() },
		},
	})
}
